// An ELF file of probes, without a compiler, an assembler or a linker.
//
//      0        ELF header, 3 program headers
//               .text           nop; ret  for each probe, 16 bytes apart
//               .stapsdt.base   1 byte
//      0x10000  .probes         a semaphore of 2 bytes each
//               .note.stapsdt, .symtab, .strtab, .shstrtab, section headers: not loaded
//
// Addresses are file offsets. A probe is a function that does nothing: whoever fires it calls it with the arguments, so the
// places where the calling convention puts them are where the notes say they are, at the function's first instruction:
//
//      x86_64   %rdi %rsi %rdx %rcx %r8 %r9, then 8(%rsp), 16(%rsp) ... : the return address is at (%rsp)
//      arm64    x0 ... x7, then [sp], [sp, 8] ...
//
// The symbol table is for stacks: a profiler names the function like its probe.
#include "runtime/usdt/image.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::usdt {
namespace {

struct Machine {
    uint16_t machine;
    std::string_view code; ///< nop; ret
    std::span<const char *const> registers;
    unsigned stack_at; ///< from the stack pointer to the first argument that has no register
};
using namespace std::string_view_literals;
constexpr const char *kX86[] = {"%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9"};
constexpr const char *kArm64[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
constexpr const char *kRiscv[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"};
constexpr Machine kMachines[] = {
    {EM_X86_64, "\x90\xc3"sv, kX86, 8},
    {EM_AARCH64, "\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"sv, kArm64, 0},
    {EM_RISCV, "\x13\x00\x00\x00\x67\x80\x00\x00"sv, kRiscv, 0},
};
constexpr uint64_t kCodeDistance = 16;

bool is_name(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || text.size() > 255 || !letter(text[0])) return false;
    return std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string spec(const Machine &machine, const ArgumentKind &kind, size_t at) {
    std::string out = format("{}{}{}@", kind.is_signed ? "-" : "", kind.size, kind.is_float ? "f" : "");
    if (at < machine.registers.size()) return out + machine.registers[at];
    const size_t offset = machine.stack_at + (at - machine.registers.size()) * 8;
    if (machine.machine == EM_X86_64) return out + format("{}(%rsp)", offset);
    if (machine.machine == EM_RISCV) return out + format("{}(sp)", offset);
    return out + (offset == 0 ? std::string("[sp]") : format("[sp, {}]", offset));
}

Result<void> check(std::string_view provider, std::span<const NewProbe> probes) {
    if (!is_name(provider)) return fail(Errc::invalid_argument, "\"{}\" can't be the name of a provider", provider);
    for (size_t i = 0; i < probes.size(); ++i) {
        const NewProbe &probe = probes[i];
        if (!is_name(probe.name))
            return fail(Errc::invalid_argument, "{}: \"{}\" can't be the name of a probe", provider, probe.name);
        for (size_t j = 0; j < i; ++j)
            if (probes[j].name == probe.name) return fail(Errc::invalid_argument, "{}:{} is defined twice", provider, probe.name);
        if (probe.arguments.size() > kMostArguments)
            return fail(Errc::invalid_argument, "{}:{} has {} arguments, and a probe has at most {}", provider, probe.name,
                        probe.arguments.size(), kMostArguments);
        for (const ArgumentKind &a : probe.arguments) {
            const bool fits = a.size == 4 || a.size == 8 || (!a.is_float && (a.size == 1 || a.size == 2));
            if (!fits || (a.is_float && a.is_signed))
                return fail(Errc::invalid_argument, "{}:{}: an argument can't have {} bytes{}", provider, probe.name, a.size,
                            a.is_float ? " as a float" : "");
        }
    }
    return {};
}

// Bytes that grow; what has been written stays where it is.
class Writer {
  public:
    [[nodiscard]] uint64_t at() const { return bytes_.size(); }
    void align(uint64_t to) { bytes_.resize((bytes_.size() + to - 1) / to * to); }
    void text(std::string_view value) {
        const auto *data = reinterpret_cast<const std::byte *>(value.data());
        bytes_.insert(bytes_.end(), data, data + value.size());
    }
    void c_string(std::string_view value) {
        text(value);
        bytes_.push_back(std::byte{0});
    }
    template <class T> void value(const T &value) { text({reinterpret_cast<const char *>(&value), sizeof value}); }
    template <class T> void put(uint64_t at, const T &value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }
    [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

void write_note(Writer &out, std::string_view provider, const NewProbe &probe, const Machine &machine,
                const Image::ProbeOffsets &offsets, uint64_t base) {
    std::string arguments;
    for (size_t i = 0; i < probe.arguments.size(); ++i) {
        if (i > 0) arguments += ' ';
        arguments += spec(machine, probe.arguments[i], i);
    }
    const uint64_t size = 3 * sizeof(uint64_t) + provider.size() + probe.name.size() + arguments.size() + 3;
    out.value(Elf64_Nhdr{8, static_cast<uint32_t>(size), 3});
    out.c_string("stapsdt");
    out.value(offsets.code);
    out.value(base);
    out.value(offsets.semaphore);
    out.c_string(provider);
    out.c_string(probe.name);
    out.c_string(arguments);
    out.align(4);
}

} // namespace

Result<Image> make_image(std::string_view provider, std::span<const NewProbe> probes, uint16_t machine) {
    const auto *row =
        std::find_if(std::begin(kMachines), std::end(kMachines), [&](const Machine &m) { return m.machine == machine; });
    if (row == std::end(kMachines)) return fail(Errc::unsupported, "rawbpf can make probes only on x86_64, arm64 and riscv64");
    TRY(check(provider, probes));
    Image image;
    Writer out;
    out.value(Elf64_Ehdr{});
    const uint64_t segments_at = out.at();
    for (int i = 0; i < 3; ++i) out.value(Elf64_Phdr{});
    out.align(kCodeDistance);
    const uint64_t text_at = out.at();
    for (size_t i = 0; i < probes.size(); ++i) {
        image.probes.push_back({out.at(), 0});
        out.text(row->code);
        out.align(kCodeDistance);
    }
    const uint64_t base = out.at();
    out.text("\0"sv);
    image.code_size = out.at();
    out.align(kImageAlignment);
    image.data_offset = out.at();
    for (Image::ProbeOffsets &offsets : image.probes) {
        offsets.semaphore = out.at();
        out.text("\0\0"sv);
    }
    image.data_size = std::max<uint64_t>(out.at() - image.data_offset, 2);
    out.align(8);

    std::string names("\0", 1); // of sections
    std::vector<Elf64_Shdr> sections(1);
    const auto section = [&](std::string_view name, uint32_t type, uint64_t flags, uint64_t at, uint64_t end,
                             uint64_t alignment) {
        Elf64_Shdr &s = sections.emplace_back();
        s.sh_name = static_cast<uint32_t>(names.size());
        s.sh_type = type;
        s.sh_flags = flags;
        s.sh_addr = flags & SHF_ALLOC ? at : 0;
        s.sh_offset = at;
        s.sh_size = end - at;
        s.sh_addralign = alignment;
        names.append(name).push_back('\0');
        return static_cast<uint16_t>(sections.size() - 1);
    };
    const uint16_t text = section(".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text_at, base, kCodeDistance);
    section(".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, base, base + 1, 1);
    section(".probes", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, image.data_offset, image.data_offset + 2 * probes.size(), 2);
    const uint64_t notes_at = out.at();
    for (size_t i = 0; i < probes.size(); ++i) write_note(out, provider, probes[i], *row, image.probes[i], base);
    section(".note.stapsdt", SHT_NOTE, 0, notes_at, out.at(), 4);

    out.align(8);
    const uint64_t symbols_at = out.at();
    std::string symbol_names("\0", 1);
    out.value(Elf64_Sym{});
    for (size_t i = 0; i < probes.size(); ++i) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<uint32_t>(symbol_names.size());
        symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        symbol.st_shndx = text;
        symbol.st_value = image.probes[i].code;
        symbol.st_size = row->code.size();
        out.value(symbol);
        symbol_names.append(provider).append("_").append(probes[i].name).push_back('\0');
    }
    const uint16_t symbols = section(".symtab", SHT_SYMTAB, 0, symbols_at, out.at(), 8);
    sections[symbols].sh_entsize = sizeof(Elf64_Sym);
    sections[symbols].sh_info = 1; // the first that isn't local
    const uint64_t strings_at = out.at();
    out.text(symbol_names);
    sections[symbols].sh_link = section(".strtab", SHT_STRTAB, 0, strings_at, out.at(), 1);
    const uint64_t names_at = out.at();
    const uint16_t section_names = section(".shstrtab", SHT_STRTAB, 0, names_at, names_at, 1);
    sections[section_names].sh_size = names.size();
    out.text(names);
    out.align(8);

    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = segments_at;
    header.e_shoff = out.at();
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 3;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shstrndx = section_names;
    out.put(0, header);
    const auto segment = [&](unsigned at, uint32_t type, uint32_t flags, uint64_t offset, uint64_t size, uint64_t alignment) {
        out.put(segments_at + at * sizeof(Elf64_Phdr), Elf64_Phdr{type, flags, offset, offset, offset, size, size, alignment});
    };
    segment(0, PT_LOAD, PF_R | PF_X, 0, image.code_size, kImageAlignment);
    segment(1, PT_LOAD, PF_R | PF_W, image.data_offset, image.data_size, kImageAlignment);
    segment(2, PT_GNU_STACK, PF_R | PF_W, 0, 0, 16);
    for (const Elf64_Shdr &s : sections) out.value(s);
    image.bytes = std::move(out).take();
    return image;
}

} // namespace rawbpf::inline v0::usdt
