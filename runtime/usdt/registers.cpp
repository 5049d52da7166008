// The saved registers, machine by machine. What a uprobe's program gets is the part of struct pt_regs that user space may know:
// arch/x86/include/asm/ptrace.h, arch/{arm,arm64,riscv,s390}/include/uapi/asm/ptrace.h. These layouts are ABI and don't change.
//
//      x86_64     r15 0, r14 8 ... rip 128, rsp 152           a name for each width: rax eax ax al, and ah
//      arm64      x0 0 ... x30 240, sp 248, pc 256            xN, wN
//      riscv64    pc 0, ra 8 ... (x1 to x31 by number)        ABI names and xN
//      arm        r0 0, r1 4 ... sp 52, lr 56, pc 60          rN, and fp, ip, sp, lr, pc; words of four bytes
//      s390x      args 0, psw 8 (its address at 16), r0 24 ...
//
// The tables are for every machine on every machine: files of another one are listed and checked here too.
#include "runtime/usdt/registers.h"

#include <elf.h>
#include <optional>

#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::usdt {
namespace {

constexpr uint8_t kBits[] = {64, 32, 16, 8};

struct Wide {
    std::string_view names[4]; ///< of 64, 32, 16 and 8 bits
    int16_t offset;
};
constexpr Wide kX86[] = {
    {{"r15", "r15d", "r15w", "r15b"}, 0},  {{"r14", "r14d", "r14w", "r14b"}, 8},  {{"r13", "r13d", "r13w", "r13b"}, 16},
    {{"r12", "r12d", "r12w", "r12b"}, 24}, {{"rbp", "ebp", "bp", "bpl"}, 32},     {{"rbx", "ebx", "bx", "bl"}, 40},
    {{"r11", "r11d", "r11w", "r11b"}, 48}, {{"r10", "r10d", "r10w", "r10b"}, 56}, {{"r9", "r9d", "r9w", "r9b"}, 64},
    {{"r8", "r8d", "r8w", "r8b"}, 72},     {{"rax", "eax", "ax", "al"}, 80},      {{"rcx", "ecx", "cx", "cl"}, 88},
    {{"rdx", "edx", "dx", "dl"}, 96},      {{"rsi", "esi", "si", "sil"}, 104},    {{"rdi", "edi", "di", "dil"}, 112},
    {{"rip", "eip", "", ""}, 128},         {{"rsp", "esp", "sp", "spl"}, 152},
};
struct Named {
    std::string_view name;
    int16_t offset;
};
constexpr Named kX86High[] = {{"ah", 80}, {"bh", 40}, {"ch", 88}, {"dh", 96}};
constexpr std::string_view kSegments[] = {"fs", "gs", "cs", "ds", "es", "ss"};

std::optional<int> number_in(std::string_view text, int most) {
    int number = 0;
    if (text.size() > 2 || !parse_whole(text, number) || number < 0 || number > most) return std::nullopt;
    return number;
}
// "xmm3": one of these words, and a number behind it.
bool is_numbered(std::string_view name, std::string_view word, int most) {
    return name.starts_with(word) && number_in(name.substr(word.size()), most);
}

Register general(std::string_view name, int offset, uint8_t bits = 64, uint8_t shift = 0) {
    return {name, RegisterKind::general, static_cast<int16_t>(offset), bits, shift, 8};
}
Register of_kind(std::string_view name, RegisterKind kind) { return {name, kind, 0, 64, 0, 8}; }

Register x86(std::string_view name) {
    for (const Wide &row : kX86)
        for (size_t i = 0; i < 4; ++i)
            if (!name.empty() && row.names[i] == name) return general(name, row.offset, kBits[i]);
    for (const Named &row : kX86High)
        if (row.name == name) return general(name, row.offset, 8, 8);
    for (std::string_view segment : kSegments)
        if (segment == name) return of_kind(name, RegisterKind::segment);
    for (std::string_view word : {"xmm", "ymm", "zmm", "mm", "k", "st"})
        if (is_numbered(name, word, 31)) return of_kind(name, RegisterKind::vector);
    return of_kind(name, name == "st" ? RegisterKind::vector : RegisterKind::none);
}

Register arm64(std::string_view name) {
    if (name == "sp") return general(name, 248);
    if (name == "wsp") return general(name, 248, 32);
    if (name == "lr") return general(name, 240);
    if (name == "fp") return general(name, 232);
    if (name == "xzr" || name == "wzr") return of_kind(name, RegisterKind::zero);
    if (name.empty()) return {};
    const std::string_view digits = name.substr(1);
    if (name[0] == 'x' || name[0] == 'w') {
        if (std::optional<int> number = number_in(digits, 30)) return general(name, *number * 8, name[0] == 'x' ? 64 : 32);
        return {};
    }
    constexpr std::string_view kVectors = "bhsdqvz";
    return of_kind(name,
                   kVectors.find(name[0]) != kVectors.npos && number_in(digits, 31) ? RegisterKind::vector : RegisterKind::none);
}

Register riscv(std::string_view name) {
    if (name == "zero" || name == "x0") return of_kind(name, RegisterKind::zero);
    constexpr std::string_view kFirst[] = {"ra", "sp", "gp", "tp"};
    for (size_t i = 0; i < 4; ++i)
        if (kFirst[i] == name) return general(name, static_cast<int>(i + 1) * 8);
    if (name == "fp") return general(name, 64);
    if (name.starts_with('f')) { // f0, ft0, fs0, fa0
        const std::string_view rest = name.substr(1);
        const bool is_abi = rest.starts_with('t') || rest.starts_with('s') || rest.starts_with('a');
        return of_kind(name, number_in(is_abi ? rest.substr(1) : rest, 31) ? RegisterKind::vector : RegisterKind::none);
    }
    if (name.size() < 2) return {};
    const std::optional<int> number = number_in(name.substr(1), 31);
    if (!number) return {};
    const int n = *number;
    switch (name[0]) {
    case 'x': return general(name, n * 8);
    case 'a': return n <= 7 ? general(name, (10 + n) * 8) : Register{};
    case 't': return n <= 6 ? general(name, (n <= 2 ? 5 + n : 25 + n) * 8) : Register{};
    case 's': return n <= 11 ? general(name, (n <= 1 ? 8 + n : 16 + n) * 8) : Register{};
    default: return {};
    }
}

Register s390(std::string_view name) {
    if (is_numbered(name, "r", 15)) return general(name, 24 + 8 * *number_in(name.substr(1), 15));
    return of_kind(name, is_numbered(name, "f", 15) || is_numbered(name, "v", 31) ? RegisterKind::vector : RegisterKind::none);
}

Register arm(std::string_view name) {
    const auto of = [&](int number) { return Register{name, RegisterKind::general, static_cast<int16_t>(number * 4), 32, 0, 4}; };
    constexpr std::string_view kLast[] = {"sl", "fp", "ip", "sp", "lr", "pc"}; // r10 to r15
    for (int i = 0; i < 6; ++i)
        if (kLast[i] == name) return of(10 + i);
    if (is_numbered(name, "r", 15)) return of(*number_in(name.substr(1), 15));
    const bool vector = is_numbered(name, "s", 31) || is_numbered(name, "d", 31) || is_numbered(name, "q", 15);
    return of_kind(name, vector ? RegisterKind::vector : RegisterKind::none);
}

} // namespace

Register find_register(uint16_t machine, std::string_view name) {
    switch (machine) {
    case EM_X86_64:
    case EM_386: return x86(name);
    case EM_AARCH64: return arm64(name);
    case EM_RISCV: return riscv(name);
    case EM_S390: return s390(name);
    case EM_ARM: return arm(name);
    default: return {};
    }
}

int16_t program_counter(uint16_t machine) {
    switch (machine) {
    case EM_X86_64:
    case EM_386: return 128;
    case EM_AARCH64: return 256;
    case EM_RISCV: return 0;
    case EM_S390: return 16;
    case EM_ARM: return 60;
    default: return -1;
    }
}

std::string_view machine_name(uint16_t machine, bool is_64) {
    switch (machine) {
    case EM_X86_64: return is_64 ? "x86_64" : "x32";
    case EM_386: return "i386";
    case EM_AARCH64: return "arm64";
    case EM_ARM: return "arm";
    case EM_RISCV: return is_64 ? "riscv64" : "riscv32";
    case EM_S390: return is_64 ? "s390x" : "s390";
    case EM_PPC64: return "ppc64";
    case EM_PPC: return "ppc";
    case EM_MIPS: return "mips";
    default: return "a machine that rawbpf doesn't know";
    }
}

} // namespace rawbpf::inline v0::usdt
