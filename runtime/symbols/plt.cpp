// Names for PLT entries: code that the linker makes, a few instructions a callee, so hot in programs that call many small
// library functions, and without a symbol.
//
//     call printf ->  .plt.sec:  endbr64
//                                jmp *0x2f75(%rip)  ---> .got slot 0x3fd0 ---> printf
//                                                             ^
//     .rela.plt:  offset 0x3fd0, R_X86_64_JUMP_SLOT, symbol printf
//
// Linkers lay the table out in many ways (with or without a header, .plt and .plt.sec with IBT, .plt.got, BTI on arm64), so
// nothing is counted: each stub's jump is decoded to the GOT slot that it goes through, and the relocation of that slot names it.
// One form has no slot: the lazy half of x86_64's .plt with IBT pushes the relocation's number, which is as good.
//
//     x86_64:  [f3 0f 1e fa] [f2] ff 25 <disp32>         (endbr64, bnd) jmp *disp(%rip)
//              [f3 0f 1e fa] 68 <imm32> [f2] e9 ..       (endbr64) push number; (bnd) jmp to the header
//     arm64:   [d503245f]  adrp x16, page;  ldr x17, [x16, #low];  add ..;  br x17       ([bti c])
//
// IRELATIVE slots (an IFUNC called from its own library, as libc does with memcpy) have no symbol but the address of the
// resolver, which bears the function's name.
// Sources: the psABIs; binutils' elfxx-x86.c and elfnn-aarch64.c describe the same layouts.
#include "runtime/symbols/plt.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include <elf.h>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::symbols {
namespace {

constexpr size_t kMaxStubs = 1 << 20;

struct Stub {
    uint64_t slot; // address of the GOT entry it jumps through
    uint64_t start;
    uint32_t size;
};

// --- x86_64

// What one stub at `at` refers to: a slot, or the number of a relocation in .rela.plt.
struct X86Target {
    std::optional<uint64_t> slot;
    std::optional<uint32_t> number;
};
X86Target decode_x86(Bytes code, uint64_t address) {
    size_t at = 0;
    auto matches = [&](std::initializer_list<uint8_t> wanted) {
        if (code.size() - at < wanted.size()) return false;
        size_t i = at;
        for (uint8_t byte : wanted)
            if (static_cast<uint8_t>(code[i++]) != byte) return false;
        return true;
    };
    if (matches({0xf3, 0x0f, 0x1e, 0xfa})) at += 4;
    if (matches({0x68}) && code.size() - at >= 5) return {{}, load<uint32_t>(code.data() + at + 1)};
    if (matches({0xf2})) at += 1;
    if (!matches({0xff, 0x25}) || code.size() - at < 6) return {};
    auto displacement = static_cast<int64_t>(load<int32_t>(code.data() + at + 2));
    return {address + at + 6 + static_cast<uint64_t>(displacement), {}};
}

void stubs_x86(const elf::Elf &elf, const elf::Section &section, Bytes jump_relocations, std::vector<Stub> &stubs) {
    Bytes code = elf.contents(section);
    size_t stride = section.entry_size == 8 ? 8 : 16;
    for (size_t at = 0; at + stride <= code.size() && stubs.size() < kMaxStubs; at += stride) {
        uint64_t start = section.address + at;
        X86Target target = decode_x86(code.subspan(at, stride), start);
        if (target.number) {
            size_t offset = size_t{*target.number} * sizeof(Elf64_Rela);
            if (offset + sizeof(Elf64_Rela) <= jump_relocations.size())
                target.slot = load<Elf64_Rela>(jump_relocations.data() + offset).r_offset;
        }
        if (target.slot) stubs.push_back({*target.slot, start, static_cast<uint32_t>(stride)});
    }
}

// --- arm64

void stubs_arm64(const elf::Elf &elf, const elf::Section &section, std::vector<Stub> &stubs) {
    Bytes code = elf.contents(section);
    auto word = [&](size_t at) { return load<uint32_t>(code.data() + at); };
    for (size_t at = 0; at + 16 <= code.size() && stubs.size() < kMaxStubs; at += 4) {
        uint32_t adrp = word(at), ldr = word(at + 4);
        if ((adrp & 0x9f00001f) != 0x90000010) continue; // adrp x16, page
        if ((ldr & 0xffc003ff) != 0xf9400211) continue;  // ldr x17, [x16, #imm12 * 8]
        int64_t pages = static_cast<int64_t>((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3));
        if (pages & 1 << 20) pages -= 1 << 21;
        uint64_t page = ((section.address + at) & ~uint64_t{0xfff}) + static_cast<uint64_t>(pages) * 4096;
        uint64_t slot = page + (ldr >> 10 & 0xfff) * 8;
        bool bti = at >= 4 && word(at - 4) == 0xd503245f;
        size_t begin = bti ? at - 4 : at;
        stubs.push_back({slot, section.address + begin, bti ? 24u : 16u});
        at += 12;
    }
}

// How many relocations at the beginning of .rela.dyn are of no symbol, RELATIVE: most of them, as linkers put them there. They
// may be megabytes, and nothing here wants them.
uint64_t relative_relocations(const elf::Elf &elf) {
    const elf::Section *section = elf.find_section(".dynamic");
    if (!section || section->type != SHT_DYNAMIC) return 0;
    const Bytes entries = elf.contents(*section);
    for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
        const auto entry = load<Elf64_Dyn>(entries.data() + at);
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_RELACOUNT) return entry.d_un.d_val;
    }
    return 0;
}

} // namespace

PltEntries read_plt(const elf::Elf &elf) {
    bool x86 = elf.machine() == EM_X86_64, arm64 = elf.machine() == EM_AARCH64;
    if ((!x86 && !arm64) || !elf.is_64() || elf.big_endian()) return {};
    const elf::Section *dynsym = nullptr;
    for (const elf::Section &section : elf.sections())
        if (section.type == SHT_DYNSYM && !dynsym) dynsym = &section;

    Bytes jump_relocations;
    if (const elf::Section *section = elf.find_section(".rela.plt"); section && section->type == SHT_RELA)
        jump_relocations = elf.contents(*section);
    std::vector<Stub> stubs;
    // The first section of each name: a file with ten thousand of them is up to something.
    for (std::string_view name : {".plt", ".plt.sec", ".plt.got", ".iplt"}) {
        const elf::Section *section = elf.find_section(name);
        if (!section || section->type != SHT_PROGBITS || !(section->flags & SHF_EXECINSTR)) continue;
        if (x86)
            stubs_x86(elf, *section, jump_relocations, stubs);
        else
            stubs_arm64(elf, *section, stubs);
    }
    if (stubs.empty()) return {};
    stable_sort(stubs, [](const Stub &a, const Stub &b) { return a.slot != b.slot ? a.slot < b.slot : a.start < b.start; });

    PltEntries plt;
    Result<elf::SymbolTable> symbols = dynsym ? elf.symbol_table(*dynsym) : fail(Errc::not_found, "no .dynsym");
    const uint32_t irelative = x86 ? R_X86_64_IRELATIVE : R_AARCH64_IRELATIVE;
    const uint32_t jump_slot = x86 ? R_X86_64_JUMP_SLOT : R_AARCH64_JUMP_SLOT;
    const uint32_t glob_dat = x86 ? R_X86_64_GLOB_DAT : R_AARCH64_GLOB_DAT;
    std::vector<FunctionTable::Hit> named, indirect;
    for (std::string_view name : {".rela.plt", ".rela.dyn", ".rela.iplt"}) {
        const elf::Section *section = elf.find_section(name);
        if (!section || section->type != SHT_RELA) continue;
        Bytes relocations = elf.contents(*section);
        if (name == ".rela.dyn")
            relocations = relocations.subspan(
                std::min<uint64_t>(relative_relocations(elf), relocations.size() / sizeof(Elf64_Rela)) * sizeof(Elf64_Rela));
        for (size_t at = 0; at + sizeof(Elf64_Rela) <= relocations.size(); at += sizeof(Elf64_Rela)) {
            auto relocation = load<Elf64_Rela>(relocations.data() + at);
            auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
            if (type != irelative && type != jump_slot && type != glob_dat) continue;
            auto stub = std::lower_bound(stubs.begin(), stubs.end(), relocation.r_offset,
                                         [](const Stub &s, uint64_t slot) { return s.slot < slot; });
            for (; stub != stubs.end() && stub->slot == relocation.r_offset && named.size() + indirect.size() < kMaxStubs;
                 ++stub) {
                if (type == irelative) {
                    indirect.push_back({stub->start, stub->size, static_cast<uint32_t>(plt.resolvers.size())});
                    plt.resolvers.push_back(static_cast<uint64_t>(relocation.r_addend));
                } else if (uint64_t symbol = ELF64_R_SYM(relocation.r_info); symbols && symbol != 0 && symbol < symbols->size()) {
                    named.push_back({stub->start, stub->size, symbols->name_offset(symbol)});
                }
            }
        }
    }
    plt.named = FunctionTable::of(std::move(named));
    plt.indirect = FunctionTable::of(std::move(indirect));
    plt.resolvers.shrink_to_fit();
    return plt;
}

} // namespace rawbpf::inline v0::symbols
