// Where a USDT probe's arguments are, as the compiler wrote it down: the operands of an asm statement.
//
//      SIZE@OPERAND, separated by blanks; a negative size is a signed value's
//
//      x86_64      -4@%eax   4@$71   8@-96(%rbp)   8@(%rsp)   1@-96(%rbp,%rax,8)
//      arm64       -8@x4     4@5     -4@[sp, 96]   8@[x0]     8@[x0, x1, lsl 3]
//
// A program finds them by way of struct pt_regs: the offsets here are those of the kernel's user-visible layouts
// (arch/*/include/uapi/asm/ptrace.h), for either machine on either, so that tests need no second one. Floating point registers
// aren't in there, and what lies at a symbol's address would need the symbol: those are left for bpf_usdt_arg() to refuse.
#include <charconv>
#include <elf.h>
#include <optional>

#include "runtime/link/usdt.h"

namespace rawbpf::inline v0 {
namespace {

struct Register {
    std::string_view names[4]; ///< of 64, 32, 16 and 8 bits
    int16_t offset;
};
constexpr Register kX86[] = {
    {{"r15", "r15d", "r15w", "r15b"}, 0},  {{"r14", "r14d", "r14w", "r14b"}, 8},  {{"r13", "r13d", "r13w", "r13b"}, 16},
    {{"r12", "r12d", "r12w", "r12b"}, 24}, {{"rbp", "ebp", "bp", "bpl"}, 32},     {{"rbx", "ebx", "bx", "bl"}, 40},
    {{"r11", "r11d", "r11w", "r11b"}, 48}, {{"r10", "r10d", "r10w", "r10b"}, 56}, {{"r9", "r9d", "r9w", "r9b"}, 64},
    {{"r8", "r8d", "r8w", "r8b"}, 72},     {{"rax", "eax", "ax", "al"}, 80},      {{"rcx", "ecx", "cx", "cl"}, 88},
    {{"rdx", "edx", "dx", "dl"}, 96},      {{"rsi", "esi", "si", "sil"}, 104},    {{"rdi", "edi", "di", "dil"}, 112},
    {{"rip", "eip", "", ""}, 128},         {{"rsp", "esp", "sp", "spl"}, 152},
};

std::optional<int16_t> x86_register(std::string_view name) {
    for (const Register &row : kX86)
        for (std::string_view candidate : row.names)
            if (!candidate.empty() && candidate == name) return row.offset;
    return std::nullopt;
}

std::optional<int16_t> arm64_register(std::string_view name) {
    constexpr int16_t kStackPointer = 31 * 8;
    if (name == "sp") return kStackPointer;
    if (name.size() < 2 || name.size() > 3 || (name[0] != 'x' && name[0] != 'w')) return std::nullopt;
    int16_t number = 0;
    auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 0 || number > 30) return std::nullopt;
    return static_cast<int16_t>(number * 8);
}

// Reads an operand from left to right; what isn't there leaves the cursor where it was.
struct Cursor {
    std::string_view rest;

    void blanks() {
        while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    }
    bool take(char c) {
        blanks();
        if (rest.empty() || rest[0] != c) return false;
        rest.remove_prefix(1);
        return true;
    }
    std::optional<int64_t> number() {
        blanks();
        std::string_view text = rest;
        const bool negative = text.starts_with('-');
        if (negative || text.starts_with('+')) text.remove_prefix(1);
        const int base = text.starts_with("0x") ? 16 : 10;
        if (base == 16) text.remove_prefix(2);
        uint64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
        if (error != std::errc()) return std::nullopt;
        rest = text.substr(static_cast<size_t>(end - text.data()));
        return static_cast<int64_t>(negative ? 0 - value : value); // a constant may be as large as an unsigned one
    }
    std::string_view word() {
        blanks();
        size_t size = 0;
        while (size < rest.size() && ((rest[size] >= 'a' && rest[size] <= 'z') || (rest[size] >= '0' && rest[size] <= '9')))
            ++size;
        std::string_view out = rest.substr(0, size);
        rest.remove_prefix(size);
        return out;
    }
    bool done() {
        blanks();
        return rest.empty();
    }
};

bool place(UsdtSpec::Argument &out, UsdtSpec::Kind kind, std::optional<int16_t> base, int64_t value = 0) {
    if (!base) return false;
    out.where = kind;
    out.register_offset = *base;
    out.value = static_cast<uint64_t>(value);
    return true;
}
bool index(UsdtSpec::Argument &out, std::optional<int16_t> by, int64_t shift) {
    if (!by || shift < 0 || shift > 15) return false;
    out.where = UsdtSpec::indexed | static_cast<uint32_t>(*by) << 8 | static_cast<uint32_t>(shift) << 20;
    return true;
}

bool x86_operand(Cursor &at, UsdtSpec::Argument &out) {
    if (at.take('$')) {
        std::optional<int64_t> value = at.number();
        return value && place(out, UsdtSpec::constant, 0, *value);
    }
    if (at.take('%')) return place(out, UsdtSpec::in_register, x86_register(at.word()));
    const int64_t offset = at.number().value_or(0);
    if (!at.take('(') || !at.take('%') || !place(out, UsdtSpec::in_memory, x86_register(at.word()), offset)) return false;
    if (!at.take(',')) return at.take(')');
    if (!at.take('%')) return false;
    const std::optional<int16_t> by = x86_register(at.word());
    const int64_t scale = at.take(',') ? at.number().value_or(0) : 1;
    if (scale != 1 && scale != 2 && scale != 4 && scale != 8) return false;
    return index(out, by, __builtin_ctzll(static_cast<uint64_t>(scale))) && at.take(')');
}

bool arm64_operand(Cursor &at, UsdtSpec::Argument &out) {
    if (!at.take('[')) {
        if (std::optional<int64_t> value = at.number()) return place(out, UsdtSpec::constant, 0, *value);
        std::string_view name = at.word();
        if (name == "xzr" || name == "wzr") return place(out, UsdtSpec::constant, 0, 0);
        return place(out, UsdtSpec::in_register, arm64_register(name));
    }
    if (!place(out, UsdtSpec::in_memory, arm64_register(at.word()))) return false;
    if (!at.take(',')) return at.take(']');
    (void)at.take('#');
    if (std::optional<int64_t> offset = at.number()) {
        out.value = static_cast<uint64_t>(*offset);
        return at.take(']');
    }
    std::string_view name = at.word();
    if (!name.starts_with('x')) return false; // 32-bit ones are extended first
    int64_t shift = 0;
    if (at.take(',')) {
        if (at.word() != "lsl") return false;
        (void)at.take('#');
        shift = at.number().value_or(-1);
    }
    return index(out, arm64_register(name), shift) && at.take(']');
}

bool read_argument(std::string_view text, uint16_t machine, UsdtSpec::Argument &out) {
    Cursor at{text};
    const std::optional<int64_t> size = at.number();
    if (!size || !at.take('@')) return false;
    const uint64_t bytes = *size < 0 ? 0 - static_cast<uint64_t>(*size) : static_cast<uint64_t>(*size);
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return false;
    out.is_signed = *size < 0;
    out.shift = static_cast<int8_t>(64 - bytes * 8);
    const bool read = machine == EM_X86_64 ? x86_operand(at, out) : machine == EM_AARCH64 ? arm64_operand(at, out) : false;
    return read && at.done();
}

// The next argument: up to a blank that isn't inside of brackets.
std::string_view next_argument(std::string_view &rest) {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    int depth = 0;
    size_t end = 0;
    for (; end < rest.size() && (depth > 0 || rest[end] != ' '); ++end) {
        depth += rest[end] == '(' || rest[end] == '[';
        depth -= rest[end] == ')' || rest[end] == ']';
    }
    std::string_view out = rest.substr(0, end);
    rest.remove_prefix(end);
    return out;
}

} // namespace

UsdtSpec read_usdt_arguments(std::string_view arguments, uint16_t machine, std::vector<std::string> &notes) {
    UsdtSpec out;
    for (std::string_view text; !(text = next_argument(arguments)).empty();) {
        if (static_cast<uint32_t>(out.count) == UsdtSpec::kMostArguments) {
            notes.push_back(format("the probe has more than {} arguments; the rest can't be read", UsdtSpec::kMostArguments));
            break;
        }
        UsdtSpec::Argument argument;
        if (!read_argument(text, machine, argument)) {
            argument = {0, UsdtSpec::unreadable, 0, false, 0};
            notes.push_back(format("argument {} can't be read by a program: its place is \"{}\"", out.count, text));
        }
        out.arguments[out.count++] = argument;
    }
    return out;
}

} // namespace rawbpf::inline v0
