// PLT entries: the stubs as binutils and lld write them, for both machines.
#include "runtime/symbols/plt.h"

#include <cstring>

#include "runtime/base/format.h"
#include "runtime/symbols/elf_symbols.h"
#include "tests/support/test.h"
#include "tests/unit/symbols/small_elf.h"

using namespace rawbpf;
using namespace rawbpf::symbols;
using test::SmallElf;

namespace {

constexpr uint64_t kPlt = 0x1000, kGot = 0x3000;

struct File {
    explicit File(uint16_t machine) : small(machine) {}

    uint32_t code(std::string_view name, uint64_t address, Bytes bytes, uint64_t entry_size) {
        elf::Section like;
        like.type = SHT_PROGBITS;
        like.flags = SHF_ALLOC | SHF_EXECINSTR;
        like.address = address;
        like.entry_size = entry_size;
        like.alignment = 16;
        uint32_t index = small.writer().add_section(name, like, bytes);
        small.writer().add_segment(PT_LOAD, PF_R | PF_X, index);
        return index;
    }
    void relocations(std::string_view name, const std::vector<Elf64_Rela> &entries) {
        elf::Section like;
        like.type = SHT_RELA;
        like.entry_size = sizeof(Elf64_Rela);
        like.alignment = 8;
        small.writer().add_section(name, like, std::as_bytes(std::span(entries)));
    }
    std::string at(uint64_t address) {
        image = small.finish();
        Result<ElfSymbols> symbols = ElfSymbols::parse(image, "plt");
        REQUIRE(symbols);
        std::optional<Name> name = symbols->find(test::offset_in(image, address));
        return name ? format("{}+{}", name->symbol, name->offset) : "-";
    }
    SmallElf small;
    std::vector<std::byte> image;
};

// One x86_64 entry: prefix bytes, then the jump or push with its 32-bit operand, filled up with int3.
void append_x86(std::vector<std::byte> &code, std::vector<uint8_t> bytes, uint32_t operand, size_t size = 16) {
    for (uint8_t b : bytes) code.push_back(std::byte(b));
    for (int i = 0; i < 4; ++i) code.push_back(std::byte(operand >> (8 * i)));
    while (code.size() % size) code.push_back(std::byte(0xcc));
}

const std::vector<test::SmallSymbol> kImports = {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                                 {"qsort", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                                 {"_ZN1a1bEv", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}};

} // namespace

TEST_CASE("plt: x86_64, lazy: a header, then jumps through the GOT") {
    File f(EM_X86_64);
    f.small.symbols(kImports, SHT_DYNSYM);
    std::vector<std::byte> code;
    append_x86(code, {0xff, 0x35}, 0x2002);                        // push GOT+8 ...
    append_x86(code, {0xff, 0x25}, kGot + 0x18 - (kPlt + 16 + 6)); // jmp *GOT+0x18
    append_x86(code, {0xff, 0x25}, kGot + 0x20 - (kPlt + 32 + 6));
    f.code(".plt", kPlt, code, 16);
    f.relocations(".rela.plt",
                  {{kGot + 0x18, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0}, {kGot + 0x20, ELF64_R_INFO(3, R_X86_64_JUMP_SLOT), 0}});
    CHECK(f.at(kPlt) == "-");
    CHECK(f.at(kPlt + 16) == "puts@plt+0");
    CHECK(f.at(kPlt + 31) == "puts@plt+15");
    CHECK(f.at(kPlt + 38) == "a::b()@plt+6");
    CHECK(f.at(kPlt + 48) == "-");
}

TEST_CASE("plt: as many of .rela.dyn are passed over as are said to be relative, and no more than there are") {
    for (const uint64_t relative : {uint64_t{0}, uint64_t{1}, uint64_t{2}, UINT64_MAX}) {
        File f(EM_X86_64);
        f.small.symbols(kImports, SHT_DYNSYM);
        std::vector<std::byte> code;
        append_x86(code, {0xff, 0x25}, kGot + 0x18 - (kPlt + 6), 8);
        append_x86(code, {0xff, 0x25}, kGot + 0x20 - (kPlt + 8 + 6), 8);
        f.code(".plt.got", kPlt, code, 8);
        f.relocations(".rela.dyn", {{kGot + 0x18, ELF64_R_INFO(1, R_X86_64_GLOB_DAT), 0},
                                    {kGot + 0x20, ELF64_R_INFO(2, R_X86_64_GLOB_DAT), 0}});
        std::vector<Elf64_Dyn> dynamic(2);
        dynamic[0].d_tag = DT_RELACOUNT;
        dynamic[0].d_un.d_val = relative;
        elf::Section like;
        like.type = SHT_DYNAMIC;
        like.alignment = 8;
        f.small.writer().add_section(".dynamic", like, std::as_bytes(std::span(dynamic)));
        CHECK(f.at(kPlt) == (relative == 0 ? "puts@plt+0" : "-"));
        CHECK(f.at(kPlt + 8) == (relative <= 1 ? "qsort@plt+0" : "-"));
    }
}

TEST_CASE("plt: x86_64 with IBT: .plt pushes the relocation's number, .plt.sec jumps; .plt.got in 8-byte entries") {
    File f(EM_X86_64);
    f.small.symbols(kImports, SHT_DYNSYM);
    std::vector<std::byte> lazy, second, got;
    append_x86(lazy, {0xff, 0x35}, 0);
    append_x86(lazy, {0xf3, 0x0f, 0x1e, 0xfa, 0x68}, 0);
    append_x86(lazy, {0xf3, 0x0f, 0x1e, 0xfa, 0x68}, 1);
    append_x86(lazy, {0xf3, 0x0f, 0x1e, 0xfa, 0x68}, 0xffffffff); // no such relocation
    append_x86(second, {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}, kGot - (kPlt + 0x100 + 11));
    append_x86(second, {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25}, kGot + 8 - (kPlt + 0x110 + 10));
    append_x86(got, {0xff, 0x25}, kGot + 16 - (kPlt + 0x200 + 6), 8);
    f.code(".plt", kPlt, lazy, 16);
    f.code(".plt.sec", kPlt + 0x100, second, 16);
    f.code(".plt.got", kPlt + 0x200, got, 8);
    f.relocations(".rela.plt",
                  {{kGot, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0}, {kGot + 8, ELF64_R_INFO(2, R_X86_64_JUMP_SLOT), 0}});
    f.relocations(".rela.dyn",
                  {{kGot + 16, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0}, {kGot + 16, ELF64_R_INFO(99, R_X86_64_GLOB_DAT), 0}});
    CHECK(f.at(kPlt + 16) == "puts@plt+0");
    CHECK(f.at(kPlt + 32) == "qsort@plt+0");
    CHECK(f.at(kPlt + 48) == "-");
    CHECK(f.at(kPlt + 0x100) == "puts@plt+0");
    CHECK(f.at(kPlt + 0x114) == "qsort@plt+4");
    CHECK(f.at(kPlt + 0x202) == "a::b()@plt+2");
    CHECK(f.at(kPlt + 0x208) == "-");
}

TEST_CASE("plt: an IFUNC of the file itself goes by its resolver's name") {
    File f(EM_X86_64);
    f.small.symbols({{"memcpy", SmallElf::kText + 0x40, 0x10, STT_GNU_IFUNC}}, SHT_DYNSYM);
    std::vector<std::byte> code;
    append_x86(code, {0xff, 0x25}, kGot - (kPlt + 6));
    append_x86(code, {0xff, 0x25}, kGot + 8 - (kPlt + 16 + 6));
    f.code(".plt", kPlt, code, 16);
    f.relocations(".rela.plt", {{kGot, ELF64_R_INFO(0, R_X86_64_IRELATIVE), SmallElf::kText + 0x40},
                                {kGot + 8, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x99}});
    CHECK(f.at(kPlt + 1) == "memcpy@plt+1");
    CHECK(f.at(kPlt + 17) == "-");
}

TEST_CASE("plt: arm64, with and without BTI") {
    File f(EM_AARCH64);
    f.small.symbols(kImports, SHT_DYNSYM);
    // adrp x16, +2 pages; ldr x17, [x16, #24]; add x16, x16, #24; br x17
    std::vector<uint32_t> code = {0xd0000010, 0xf9400e11, 0x91006210, 0xd61f0220,
                                  // bti c; the same with slot #32; nop
                                  0xd503245f, 0xd0000010, 0xf9401211, 0x91008210, 0xd61f0220, 0xd503201f};
    f.code(".plt", kPlt, std::as_bytes(std::span(code)), 16);
    f.relocations(".rela.plt",
                  {{kGot + 24, ELF64_R_INFO(1, R_AARCH64_JUMP_SLOT), 0}, {kGot + 32, ELF64_R_INFO(2, R_AARCH64_JUMP_SLOT), 0}});
    CHECK(f.at(kPlt) == "puts@plt+0");
    CHECK(f.at(kPlt + 15) == "puts@plt+15");
    CHECK(f.at(kPlt + 16) == "qsort@plt+0");
    CHECK(f.at(kPlt + 39) == "qsort@plt+23");
}

TEST_CASE("plt: cut at every byte, it reads what is there") {
    File f(EM_X86_64);
    f.small.symbols(kImports, SHT_DYNSYM);
    std::vector<std::byte> code;
    append_x86(code, {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25}, kGot - (kPlt + 11));
    for (size_t cut = 0; cut < code.size(); ++cut) {
        File cut_file(EM_X86_64);
        cut_file.small.symbols(kImports, SHT_DYNSYM);
        cut_file.code(".plt", kPlt, Bytes(code).first(cut), 16);
        cut_file.relocations(".rela.plt", {{kGot, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0}});
        auto image = cut_file.small.finish();
        Result<elf::Elf> elf = elf::Elf::parse(image, "cut");
        REQUIRE(elf);
        CHECK(read_plt(*elf).named.size() == 0);
    }
}
