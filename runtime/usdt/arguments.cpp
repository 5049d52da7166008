// SIZE@OPERAND, as <sys/sdt.h> has the compiler write it; a negative size is a signed value's, an f behind it a floating point
// one's.
//
//      x86_64      -4@%eax   4@$71   8@-96(%rbp)   8@(%rsp)   1@-96(%rbp,%rax,8)   8@(,%rax,8)   4@4+counter(%rip)   8@$counter
//      arm64       -8@x4     4@5     -4@[sp, 96]   8@[x0]     8@[x0, x1, lsl 3]    8@[x0, w1, sxtw 3]    4@[x1, #:lo12:counter]
//      riscv64     8@a0      4@5     8@-24(s0)     4@%lo(counter)(a5)
//      i386        4@counter@GOTOFF(%ebx)
//      arm         4@r0      4@#5    -4@[r7, #12]         4@[r3, r2, lsl #2]
//      s390x       8@%r2     4@5     8@160(%r15)   8@0(%r1,%r2)
//
// One grammar for all of them: an operand is a register, a number (with a symbol perhaps), or a place in memory in round or
// square brackets. What differs from machine to machine is a line in kDialects.
//
// A symbol's address is known in the file only. But a probe's program knows where it stands: the saved program counter is the
// address of the nop, in the process; and the distance from there to the symbol is the same in both.
#include "runtime/usdt/arguments.h"

#include <algorithm>
#include <charconv>
#include <elf.h>
#include <optional>

#include "runtime/base/fail.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::usdt {
namespace {

struct Dialect {
    uint16_t machine;
    bool percent;     ///< registers begin with %
    bool dollar;      ///< numbers begin with $; without it they are addresses
    bool brackets;    ///< memory is [...], not D(...)
    bool index_first; ///< (index, base) where others have (base, index)
};
constexpr Dialect kDialects[] = {
    {EM_X86_64, true, true, false, false},  {EM_386, true, true, false, false},  {EM_AARCH64, false, false, true, false},
    {EM_RISCV, false, false, false, false}, {EM_S390, true, false, false, true}, {EM_ARM, false, false, true, false},
};

constexpr std::string_view kNotUnderstood = "rawbpf doesn't understand its location";
constexpr std::string_view kNoRegister = "it names no register of this machine";
constexpr std::string_view kVector = "it is in a floating point register, which a BPF program can't read";
constexpr std::string_view kThreadLocal = "it is relative to a segment register: a thread-local variable";
constexpr std::string_view kTwoRegisters = "it is in two registers, of which only one is named";
constexpr std::string_view kUnresolved = "it is at the address of a symbol";

constexpr size_t kLongestSymbol = 1024; // so that looking for those of a hostile file ends

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_symbol(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || (!first && (is_digit(c) || c == '$'));
}

// Reads from left to right; what isn't there leaves it where it was.
struct Cursor {
    std::string_view rest;

    void blanks() {
        while (!rest.empty() && (rest[0] == ' ' || rest[0] == '\t')) rest.remove_prefix(1);
    }
    bool take(char c) {
        blanks();
        if (rest.empty() || rest[0] != c) return false;
        rest.remove_prefix(1);
        return true;
    }
    bool take(std::string_view word) {
        blanks();
        if (!rest.starts_with(word)) return false;
        rest.remove_prefix(word.size());
        return true;
    }
    // Digits behind a sign that has been taken. A constant may be as large as an unsigned number.
    std::optional<int64_t> number(bool negative) {
        blanks();
        std::string_view text = rest;
        const int base = text.starts_with("0x") ? 16 : 10;
        if (base == 16) text.remove_prefix(2);
        uint64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
        if (error != std::errc()) return std::nullopt;
        rest = text.substr(static_cast<size_t>(end - text.data()));
        return static_cast<int64_t>(negative ? 0 - value : value);
    }
    std::optional<int64_t> number() {
        const std::string_view before = rest;
        const bool negative = take('-');
        if (!negative) (void)take('+');
        std::optional<int64_t> out = number(negative);
        if (!out) rest = before;
        return out;
    }
    std::string_view word() {
        blanks();
        size_t size = 0;
        while (size < rest.size() && is_symbol(rest[size], size == 0)) ++size;
        std::string_view out = rest.substr(0, size);
        rest.remove_prefix(size);
        return out;
    }
    bool done() {
        blanks();
        return rest.empty();
    }
};

struct Reader {
    Cursor at;
    const Dialect &dialect;
    Location &out;
    std::string_view problem;
    bool from_got_base = false; ///< i386's way to be loaded anywhere: a register holds the address that symbols are counted from

    bool fail(std::string_view why = kNotUnderstood) {
        if (problem.empty()) problem = why;
        return false;
    }

    // The register here, without its %.
    bool read_register(Register &into) {
        if (dialect.percent && !at.take('%')) return fail();
        into = find_register(dialect.machine, at.word());
        switch (into.kind) {
        case RegisterKind::none: return fail(kNoRegister);
        case RegisterKind::vector: return fail(kVector);
        case RegisterKind::segment: return fail(kThreadLocal);
        default: return true;
        }
    }
    bool at_register() {
        if (dialect.percent) return at.rest.starts_with('%');
        Cursor ahead = at;
        return find_register(dialect.machine, ahead.word()).kind != RegisterKind::none;
    }

    // 5, -5, counter, 4+counter, counter-4, 2+2+counter. At most one symbol. False without a complaint: nothing of the kind.
    bool expression() {
        bool any = false;
        for (;;) {
            const std::string_view before = at.rest;
            const bool negative = at.take('-');
            if (!negative && !at.take('+') && any) return true;
            if (std::optional<int64_t> number = at.number(negative)) {
                out.offset = static_cast<int64_t>(static_cast<uint64_t>(out.offset) + static_cast<uint64_t>(*number));
            } else if (std::string_view name = at.word(); !name.empty()) {
                if (negative || !out.symbol.empty()) return fail();
                from_got_base = at.take("@GOTOFF");
                if (at.take('@')) return fail("its address is in a table that the linker makes (GOT or PLT)");
                if (name.size() > kLongestSymbol) return fail("the name of its symbol is too long");
                out.symbol = name;
            } else {
                at.rest = before;
                return any ? fail() : false;
            }
            any = true;
        }
    }

    // %lo(counter), a part of an address.
    bool low_part() {
        if (!at.take("%lo(")) return false;
        out.part = SymbolPart::low12_signed;
        return (expression() && at.take(')')) || fail();
    }

    // (base), (base, index), (base, index, scale), (, index, scale); an offset stands before it.
    bool round_brackets() {
        at.blanks();
        if (!at.rest.starts_with(',') && !read_register(out.base)) return false;
        if (at.take(',')) {
            if (!read_register(out.index)) return false;
            if (dialect.index_first) std::swap(out.base, out.index);
            if (at.take(',')) {
                const std::optional<int64_t> scale = at.number();
                if (!scale || (*scale != 1 && *scale != 2 && *scale != 4 && *scale != 8)) return fail();
                out.scale = static_cast<uint8_t>(__builtin_ctz(static_cast<unsigned>(*scale)));
            }
        }
        if (out.base.kind == RegisterKind::none && out.index.kind == RegisterKind::none) return fail();
        return at.take(')') || fail();
    }

    // [base], [base, 8], [base, #:lo12:counter], [base, index, lsl 3], [base, index, sxtw]
    bool square_brackets() {
        if (!read_register(out.base)) return false;
        if (at.take(']')) return true;
        if (!at.take(',')) return fail();
        if (!at.take('#') && at_register()) {
            if (!read_register(out.index)) return false;
            if (at.take(',')) {
                const std::string_view how = at.word();
                if (how != "lsl" && how != "uxtw" && how != "sxtw" && how != "sxtx") return fail();
                out.index_signed = how[0] == 's';
                (void)at.take('#');
                const int64_t scale = at.number().value_or(0);
                if (scale < 0 || scale > 15) return fail();
                out.scale = static_cast<uint8_t>(scale);
            } else if (out.index.bits != out.index.word * 8) {
                return fail(); // 32 bits are extended first, and how must be said
            }
            return at.take(']') || fail();
        }
        if (at.take(":lo12:")) out.part = SymbolPart::low12;
        return (expression() && at.take(']')) || fail();
    }

    bool operand() {
        out.kind = OperandKind::in_memory;
        if (dialect.brackets && at.take('[')) return square_brackets();
        if (dialect.dollar && at.take('$')) {
            out.kind = OperandKind::constant;
            return expression() || fail();
        }
        if (!dialect.percent && at.rest.starts_with("%lo(")) return low_part() && ((at.take('(') && round_brackets()) || fail());
        if (at_register()) {
            out.kind = OperandKind::in_register;
            return read_register(out.base);
        }
        if (dialect.brackets) (void)at.take('#');
        const bool number = expression();
        if (!problem.empty()) return false;
        if (!dialect.brackets && at.take('(')) return round_brackets();
        if (!number) return fail(at.rest.starts_with('%') ? kNoRegister : kNotUnderstood);
        if (dialect.dollar) return !out.symbol.empty() || fail(); // "counter": memory there
        if (!out.symbol.empty()) return fail(kNoRegister);
        out.kind = OperandKind::constant;
        return true;
    }
};

void settle(Argument &argument) {
    Location &l = argument.location;
    if (l.kind == OperandKind::in_register && l.base.kind == RegisterKind::zero) {
        l.kind = OperandKind::constant;
        l.offset = 0;
    }
    // As a base, s390x's r0 means no register.
    for (Register *r : {&l.base, &l.index})
        if (l.kind == OperandKind::in_memory && (r->kind == RegisterKind::zero || (r->name == "r0" && r->word == 8))) *r = {};
    if (l.kind == OperandKind::in_register && argument.size > l.base.word) argument.problem = kTwoRegisters;
    l.displacement = l.offset;
    l.has_displacement = l.symbol.empty();
    if (!l.has_displacement) argument.problem = kUnresolved;
    if (l.kind == OperandKind::constant && !l.has_displacement) l.kind = OperandKind::address;
}

// A name that is wanted, and the global symbol of that name, or the only local one.
struct Found {
    std::string_view name;
    int count = 0;
    bool is_global = false;
    uint64_t value = 0;
};

// Which of two texts comes first; `text` ends at a zero, which isn't looked for: a hostile table may have none for megabytes.
int compare(std::string_view name, Bytes text) {
    for (size_t i = 0;; ++i) {
        const int have = i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
        const int want = i < name.size() ? static_cast<unsigned char>(name[i]) : 0;
        if (have != want) return want < have ? -1 : 1;
        if (want == 0) return 0;
    }
}

void find_symbols(const elf::Elf &elf, std::vector<Found> &wanted) {
    for (const elf::Section &section : elf.sections()) {
        if (section.type != SHT_SYMTAB && section.type != SHT_DYNSYM) continue;
        Result<elf::SymbolTable> table = elf.symbol_table(section);
        if (!table) continue; // a damaged table is one that doesn't have it
        const Bytes strings = elf.contents(elf.sections()[section.link]);
        for (size_t i = 0; i < table->size(); ++i) {
            const Bytes name = strings.subspan(std::min<size_t>(table->name_offset(i), strings.size()));
            const auto at = std::lower_bound(wanted.begin(), wanted.end(), name,
                                             [](const Found &one, Bytes text) { return compare(one.name, text) < 0; });
            if (at == wanted.end() || compare(at->name, name) != 0) continue;
            const elf::Symbol symbol = table->at(i);
            if (symbol.section == SHN_UNDEF || symbol.type == STT_TLS || at->is_global) continue;
            at->is_global = symbol.binding != STB_LOCAL;
            if (at->is_global) at->count = 0;
            if (at->count == 0 || at->value != symbol.value) ++at->count;
            at->value = symbol.value;
        }
    }
}

void place_symbol(Argument &argument, const Found &found, const elf::Elf &elf, uint64_t site) {
    Location &l = argument.location;
    if (found.count != 1) {
        argument.problem = found.count == 0 ? "it is at the address of a symbol that the file doesn't define"
                                            : "it is at the address of a symbol, and the file has several symbols of that name";
        return;
    }
    const uint64_t target = found.value + static_cast<uint64_t>(l.offset);
    const int16_t counter = program_counter(elf.machine());
    const bool from_counter = l.base.kind == RegisterKind::general && l.base.offset == counter;
    uint64_t distance = 0;
    if (l.part == SymbolPart::low12) {
        distance = target & 0xfff;
    } else if (l.part == SymbolPart::low12_signed) {
        distance = ((target & 0xfff) ^ 0x800) - 0x800;
    } else if (from_counter || (l.base.kind == RegisterKind::none && l.index.kind == RegisterKind::none)) {
        if (!from_counter) l.base = {{}, RegisterKind::general, counter, 64, 0, 8};
        if (elf.machine() == EM_ARM) l.base.bits = 32, l.base.word = 4;
        distance = target - site;
    } else if (elf.type() == ET_EXEC) {
        distance = target; // an array's address beside a register: only where nothing moves
    } else {
        argument.problem = "its address is the sum of a symbol and a register, in a position-independent file";
        return;
    }
    l.displacement = static_cast<int64_t>(distance);
    l.has_displacement = true;
    argument.problem = {};
}

} // namespace

std::string_view next_argument(std::string_view &rest) {
    const auto blank = [&](size_t at) { return rest[at] == ' ' || rest[at] == '\t'; };
    while (!rest.empty() && blank(0)) rest.remove_prefix(1);
    // "-8f@" here?
    const auto begins = [&](size_t at) {
        while (at < rest.size() && blank(at)) ++at;
        if (at < rest.size() && rest[at] == '-') ++at;
        const size_t digits = at;
        while (at < rest.size() && is_digit(rest[at])) ++at;
        if (at == digits) return false;
        if (at < rest.size() && rest[at] == 'f') ++at;
        return at < rest.size() && rest[at] == '@';
    };
    int depth = 0;
    size_t end = 0;
    for (; end < rest.size() && !(blank(end) && (depth <= 0 || begins(end))); ++end) {
        depth += rest[end] == '(' || rest[end] == '[';
        depth -= rest[end] == ')' || rest[end] == ']';
    }
    std::string_view out = rest.substr(0, end);
    rest.remove_prefix(end);
    return out;
}

Argument parse_argument(std::string_view spec, uint16_t machine) {
    Argument out;
    out.spec = spec;
    Cursor at{spec};
    const std::optional<int64_t> size = at.number();
    if (size) out.is_float = at.take('f');
    if (!size || !at.take('@')) {
        out.problem = "it doesn't begin with a size and @";
        return out;
    }
    const uint64_t bytes = *size < 0 ? 0 - static_cast<uint64_t>(*size) : static_cast<uint64_t>(*size);
    const bool fits = out.is_float ? bytes == 4 || bytes == 8 : bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (!fits) {
        out.problem = "its size isn't 1, 2, 4 or 8 bytes";
        return out;
    }
    out.size = static_cast<uint8_t>(bytes);
    out.is_signed = *size < 0 && !out.is_float;
    const Dialect *dialect = nullptr;
    for (const Dialect &row : kDialects)
        if (row.machine == machine) dialect = &row;
    if (!dialect) {
        out.problem = "rawbpf doesn't know the registers of this machine";
        return out;
    }
    Reader reader{at, *dialect, out.location, {}, false};
    const bool read = reader.operand();
    if (read && !reader.at.done()) (void)reader.fail();
    out.problem = reader.problem;
    if (!out.problem.empty()) {
        out.location = {};
        return out;
    }
    if (reader.from_got_base) out.location.base = {}; // both together are the symbol's address
    settle(out);
    return out;
}

std::vector<Argument> parse_arguments(std::string_view text, uint16_t machine) {
    std::vector<Argument> out;
    for (std::string_view spec; !(spec = next_argument(text)).empty();) out.push_back(parse_argument(spec, machine));
    return out;
}

void resolve(const elf::Elf &elf, std::vector<AtSite> arguments) {
    std::erase_if(arguments, [](const AtSite &a) { return a.argument->location.symbol.empty(); });
    if (arguments.empty()) return;
    std::vector<Found> wanted;
    wanted.reserve(arguments.size());
    for (const AtSite &a : arguments) wanted.push_back({a.argument->location.symbol});
    stable_sort(wanted, [](const Found &a, const Found &b) { return a.name < b.name; });
    wanted.erase(std::unique(wanted.begin(), wanted.end(), [](const Found &a, const Found &b) { return a.name == b.name; }),
                 wanted.end());
    find_symbols(elf, wanted);
    for (const AtSite &a : arguments) {
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), a.argument->location.symbol,
                                         [](const Found &one, std::string_view name) { return one.name < name; });
        place_symbol(*a.argument, *at, elf, a.site);
    }
}

std::string_view type_name(const Argument &a) {
    if (a.size == 0) return "?";
    if (a.is_float) return a.size == 4 ? "f32" : "f64";
    constexpr std::string_view kNames[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
    return kNames[__builtin_ctz(a.size) * 2 + a.is_signed];
}

std::string location_text(const Argument &a) {
    const Location &l = a.location;
    std::string out;
    const auto join = [&](std::string_view text) {
        if (!out.empty()) out += " + ";
        out += text;
    };
    if (l.kind == OperandKind::unknown) return out;
    if (l.kind == OperandKind::constant) {
        if (a.is_signed || l.offset >= 0) return format("{}", l.offset);
        return format("{:#x}", static_cast<uint64_t>(l.offset) & ~uint64_t{0} >> (64 - a.size * 8));
    }
    if (l.kind == OperandKind::in_register) return std::string(l.base.name);
    const bool from_counter = !l.symbol.empty() && l.part == SymbolPart::whole && (l.base.name == "rip" || l.base.name == "eip");
    if (!from_counter) join(l.base.name);
    if (l.index.kind == RegisterKind::general) {
        join(l.index.name);
        if (l.scale != 0) append(out, " * {}", 1U << l.scale);
    }
    if (!l.symbol.empty()) join(l.part == SymbolPart::whole ? std::string(l.symbol) : format("lo12({})", l.symbol));
    if (out.empty())
        append(out, "{:#x}", static_cast<uint64_t>(l.offset));
    else if (l.offset != 0)
        append(out, " {} {}", l.offset < 0 ? '-' : '+', l.offset < 0 ? 0 - static_cast<uint64_t>(l.offset) : l.offset);
    return l.kind == OperandKind::address ? format("&({})", out) : format("*({})", out);
}

} // namespace rawbpf::inline v0::usdt
