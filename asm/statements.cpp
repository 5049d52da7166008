// LLVM's pseudo-C, one statement at a time: computing, and loading numbers and addresses. statements_memory.cpp has memory,
// statements_jumps.cpp has jumps and calls.
//
//      x = x|n    x op= x|n    x = -x    x = (s8)x    r = le16 r    r = n ll    r = NAME ll
//
// A statement is split into a shape, a symbol and a width, for which opcodes.h has one row or none.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include <algorithm>

#include "asm/assembling.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0::assembling {

namespace {

/// What a row of the instruction set takes, so that the usual operands are checked without asking for its shape.
struct Limits {
    uint8_t dst = 0, src = 0; ///< the highest register
    bool divides = false;     ///< not by 0
    int32_t off = 0;          ///< either way; less is possible
    int64_t low = 0, high = 0;
};
constexpr Limits limits_of(const Form &form) {
    Limits out;
    const uint8_t fields = form.fields();
    if (fields & kDst) out.dst = writes_dst(form.shape) ? 9 : 10;
    if (fields & kSrc) out.src = writes_src(form.shape) ? 9 : 10;
    if (fields & kOff) out.off = INT16_MAX;
    if (!(fields & kImm)) return out;
    constexpr int64_t kEdges[] = {INT64_MIN, INT32_MIN, -0x8000, -0x80,     0,          31,
                                  63,        0xff,      0xffff,  INT32_MAX, UINT32_MAX, INT64_MAX};
    out.divides = detail::check_immediate(form, 0) == Problem::zero_divisor;
    for (int64_t edge : kEdges) { // the ranges are whole, and have their ends among these
        if (edge == 0 && out.divides) continue;
        if (detail::check_immediate(form, edge) != Problem::none) continue;
        out.low = std::min(out.low, edge);
        out.high = std::max(out.high, edge);
    }
    return out;
}
struct AllLimits {
    Limits of[isa::kFormCount];
};
constexpr AllLimits kLimits = [] {
    AllLimits out{};
    for (size_t n = 0; n < isa::kFormCount; ++n) out.of[n] = limits_of(isa::kForms[n]);
    return out;
}();

/// An operator with a character that isn't in assembling.h's list would be printed, and never read.
constexpr bool reads_all_operators() {
    for (const Form &form : isa::kForms) {
        const bool assigns = form.shape == Shape::alu_imm || form.shape == Shape::alu_reg || form.shape == Shape::atomic;
        if (assigns && operator_length(form.symbol.data()) != form.symbol.size()) return false;
    }
    return true;
}
static_assert(reads_all_operators(), "the operator of a row in opcodes.h has a character that Characters (assembling.h) lacks");

} // namespace

bool Assembler::no_register() {
    const char *end = p_;
    while (is_name(*end)) ++end;
    const std::string near = near_register({p_, static_cast<size_t>(end - p_)});
    return expected("a register", near.empty() ? std::string() : "did you mean `" + near + "`?");
}

bool Assembler::reg_10(Register &out, const char *at) {
    out.number = static_cast<uint8_t>(out.number * 10 + (*p_++ - '0'));
    if (out.number > 10 || at[1] == '0')
        return fail(at, "there is no register " + std::string(at, p_) + "; they are " + *at + "0 to " + *at + "10");
    return true;
}

bool Assembler::wrong_width(const Form &form, Register reg, const char *at) {
    return fail(at, std::string("this needs ") + (form.register_bits == 32 ? "a 32-bit register, w" : "a 64-bit register, r") +
                        std::to_string(reg.number));
}

bool Assembler::no_form(const char *at, std::string_view what) {
    return fail(at, "there is no instruction for " + std::string(what), "rawbpf isa lists them");
}

void Assembler::too_many() {
    if (stop_) return;
    stop_ = true;
    fail(p_, "more than 1000000 instructions");
}

bool Assembler::refused(Problem problem, const Form &form, const Operands &operands, const Places &places) {
    const char *at = nullptr;
    switch (problem) {
    case Problem::read_only: at = writes_dst(form.shape) ? places.dst : places.src; break;
    case Problem::offset_range: at = places.off; break;
    case Problem::no_such_register: at = operands.dst > 10 ? places.dst : places.src; break;
    default: at = places.imm;
    }
    // The encoder's words are those of the builder in C++, but for this one.
    std::string message = describe(problem, form, operands);
    if (const size_t word = message.find("load_imm64"); word != std::string::npos) message.replace(word, 10, "`rN = number ll`");
    return fail(at != nullptr ? at : p_, std::move(message));
}

void Assembler::note_line(Function &to) {
    SourceLine line;
    line.insn = static_cast<uint32_t>(insns_->size());
    line.file = source_->name;
    line.line = line_number_;
    const char *start = line_start_;
    while (*start == ' ' || *start == '\t') ++start;
    line.column = static_cast<uint32_t>(start - line_start_ + 1);
    const char *end = start;
    while (*end != '\n' && *end != '\0') ++end;
    while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) --end;
    line.text.assign(start, end);
    to.lines.push_back(std::move(line));
}

bool Assembler::emit(const Form &form, const Operands &operands, const Places &places, std::string_view field) {
    const Limits &limits = kLimits.of[&form - isa::kForms];
    // All of it at once: operands that are wrong are rare, and each question by itself may be guessed wrong.
    const bool usual = (static_cast<unsigned>(operands.dst) <= limits.dst) & (static_cast<unsigned>(operands.src) <= limits.src) &
                       (operands.off >= -limits.off) & (operands.off <= limits.off) & (operands.imm >= limits.low) &
                       (operands.imm <= limits.high) & !(limits.divides & (operands.imm == 0));
    if (!usual) [[unlikely]]
        if (const Encoded encoded = encode(form, operands); !encoded) {
            if (encoded.problem != Problem::shift_range || !conformance_) return refused(encoded.problem, form, operands, places);
            warn(places.imm, describe(encoded.problem, form, operands)); // the suite tests what becomes of it
        }
    // A field is an operand, or the row's own; the other one is 0.
    const auto imm = static_cast<uint64_t>(operands.imm);
    const Insn insn{form.code, static_cast<uint8_t>(operands.dst & 15), static_cast<uint8_t>((operands.src | form.src) & 15),
                    static_cast<int16_t>(operands.off | form.off),
                    static_cast<int32_t>(static_cast<uint32_t>(imm | static_cast<uint32_t>(form.imm)))};
    Function &to = function();
    if (!field.empty()) {
        Ref ref;
        ref.insn = static_cast<uint32_t>(insns_->size());
        ref.kind = RefKind::field;
        ref.symbol = field;
        ref.addend = (form.fields() & kOff) ? operands.off : operands.imm;
        refs_.push_back(std::move(ref));
    }
    if (options_.lines) note_line(to);
    push(insn);
    if (form.shape == Shape::load_wide) push({0, 0, 0, 0, static_cast<int32_t>(static_cast<uint32_t>(imm >> 32))});
    return true;
}

// ---- numbers and pointers -------------------------------------------------------------------------------------------------

bool Assembler::wide(Register dst, const char *dst_at, Number number, const char *at, Wide kind) {
    constexpr std::string_view kSymbols[] = {"", "map", "map_value", "btf_id", "function", "map_index", "map_value_index"};
    const Form &form = *isa::kFormTable.find(Shape::load_wide, 64, kSymbols[static_cast<size_t>(kind)]);
    if (!register_bits(form, dst, dst_at)) return false;
    if (number > Number{UINT64_MAX} || number < INT64_MIN) return fail(at, "the number has more than 64 bits");
    Places places;
    places.dst = dst_at;
    places.imm = at;
    Operands operands;
    operands.dst = dst.number;
    operands.imm = static_cast<int64_t>(static_cast<uint64_t>(number));
    return emit(form, operands, places);
}

/// The address of what has a name: a map, a variable, a function.
bool Assembler::wide_name(Register dst, const char *dst_at, std::string_view symbol, const char *at) {
    Symbol reference{0, 0, false, symbol, INT64_MIN, at, source_};
    skip_space();
    if (*p_ == '+' || *p_ == '-') {
        Number addend = 0;
        const char *addend_at = p_;
        if (!binary(addend, 4, 0)) return false;
        if (addend < INT32_MIN || addend > UINT32_MAX) return fail(addend_at, "an offset into a value is 0 to 4294967295");
        reference.addend = static_cast<int64_t>(addend);
    }
    eat_word("ll");
    if (!wide(dst, dst_at, 0, at, Wide::number)) return false;
    reference.function = static_cast<uint32_t>(out_.unit.functions.size() - 1);
    reference.insn = static_cast<uint32_t>(insns_->size() - 2);
    symbols_.push_back(reference);
    return true;
}

bool Assembler::cast(Register dst, const char *dst_at) {
    if (!need('(')) return false;
    skip_space();
    Places places{dst_at, p_, nullptr, nullptr};
    Register from;
    if (!reg(from) || !need(',')) return false;
    int64_t to_space, from_space;
    if (!number(to_space, 0, 65535, "an address space") || !need(',') || !number(from_space, 0, 65535, "an address space") ||
        !need(')'))
        return false;
    const Form &form = *isa::find("addr_space_cast");
    if (!register_bits(form, dst, dst_at) || !register_bits(form, from, places.src)) return false;
    Operands operands{dst.number, from.number, 0, to_space << 16 | from_space};
    return emit(form, operands, places);
}

/// What stands behind `r1 =` and isn't a register or a plain number. `done` stays false for what has to be read as an expression.
bool Assembler::assigned(Register dst, const char *dst_at, bool &done) {
    Places places;
    places.dst = dst_at;
    done = true;
    const char *at = p_;
    switch (*p_) {
    case '*': return load(dst, dst_at);
    case '-': {
        ++p_;
        skip_space();
        if (!at_register()) break;
        places.src = p_;
        Register from;
        if (!reg(from)) return false;
        if (from.number != dst.number || from.bits != dst.bits)
            return fail(places.src, std::string("a negation is of the register itself: ") + (dst.bits == 32 ? "w" : "r") +
                                        std::to_string(dst.number) + " = -" + (dst.bits == 32 ? "w" : "r") +
                                        std::to_string(dst.number));
        return emit(dst.bits == 32 ? *isa::find("neg32") : *isa::find("neg"), {dst.number}, places);
    }
    case '(': {
        const char *type = ++p_;
        skip_space();
        if (*p_ != 's' || !is_digit(p_[1])) break;
        const std::string_view word = name();
        if (!need(')')) return false;
        const Form *form = isa::kFormTable.find(Shape::sign_extend, dst.bits, word);
        if (form == nullptr)
            return no_form(type, "a sign extension from " + std::string(word) + " to " + std::to_string(dst.bits) + " bits");
        skip_space();
        places.src = p_;
        Register from;
        if (!reg(from)) return false;
        return register_bits(*form, from, places.src) && emit(*form, {dst.number, from.number}, places);
    }
    default: {
        if (!is_name_start(*p_) && *p_ != '.') break;
        const std::string_view word = name();
        skip_space();
        if (*p_ == '(' && word != "sizeof") {
            if (word == "addr_space_cast") return cast(dst, dst_at);
            return fetch(dst, dst_at, word, at);
        }
        constexpr std::string_view kKinds[] = {"", "map", "map_value", "btf_id", "function", "map_index", "map_value_index"};
        if (is_digit(*p_))
            for (size_t kind = 1; kind < std::size(kKinds); ++kind)
                if (word == kKinds[kind]) {
                    const char *number_at = p_;
                    Number number = 0;
                    if (!this->number(number)) return false;
                    if (!eat_word("ll")) return expected("`ll`");
                    return wide(dst, dst_at, number, number_at, static_cast<Wide>(kind));
                }
        if (word == "map" && *p_ == '[') // bpftool's map[id:5]
            return fail(at, "this is a map that was loaded; the assembler needs its name",
                        "declare it with .map NAME ... and write rN = NAME ll");
        if (word == "ksym" && is_name_start(*p_)) {
            const std::string_view symbol = name();
            eat_word("ll");
            if (!wide(dst, dst_at, 0, at, Wide::number)) return false;
            Ref ref;
            ref.insn = static_cast<uint32_t>(insns_->size() - 2);
            ref.kind = RefKind::ksym;
            ref.symbol = symbol;
            refs_.push_back(std::move(ref));
            return true;
        }
        if (at_register()) {
            const Form *form = isa::kFormTable.find(Shape::byte_swap,
                                                    word.ends_with("16")   ? 16
                                                    : word.ends_with("32") ? 32
                                                                           : 64,
                                                    word);
            if (form == nullptr) {
                Nearest near(word);
                for (const Form &known : isa::kForms)
                    if (known.shape == Shape::byte_swap) near.offer(known.symbol);
                return fail(at, "there is no operation `" + std::string(word) + "` of a register", near.hint());
            }
            places.src = p_;
            Register from;
            if (!reg(from)) return false;
            if (!register_bits(*form, dst, dst_at)) return false;
            if (from.number != dst.number || from.bits != dst.bits)
                return fail(places.src, "bytes are swapped in place: r" + std::to_string(dst.number) + " = " + std::string(word) +
                                            " r" + std::to_string(dst.number));
            return emit(*form, {dst.number}, places);
        }
        if (word == "sizeof" || constants_.find(word) != constants_.end()) break;
        return wide_name(dst, dst_at, word, at);
    }
    }
    p_ = at;
    done = false;
    return true;
}

/// r1 = ..., r1 += ...
bool Assembler::assignment() {
    const char *dst_at = p_;
    Register dst;
    if (!reg(dst)) return false;
    skip_space();
    const char *op_at = p_;
    const size_t length = operator_length(p_);
    if (length == 0) return expected("an operator, like = or +=");
    const std::string_view op(p_, length);
    if (op[length - 1] != '=') {
        const bool swap = op == "=-"; // can't be: an operator ends at its =
        return swap ? false : expected("an operator, like = or +=");
    }
    p_ += length;
    skip_space();
    Places places;
    places.dst = dst_at;
    Operands operands;
    operands.dst = dst.number;
    if (at_register()) {
        Register from;
        places.src = p_;
        if (!reg(from)) return false;
        const Form *form = isa::kFormTable.find(Shape::alu_reg, dst.bits, op);
        if (form == nullptr) return fail(op_at, "there is no operator `" + std::string(op) + "`");
        operands.src = from.number;
        return register_bits(*form, from, places.src) && emit(*form, operands, places);
    }
    if (op == "=" && !is_digit(*p_)) {
        bool done;
        if (!assigned(dst, dst_at, done)) return false;
        if (done) return true;
    }
    places.imm = p_;
    Value what;
    if (!value(what)) return false;
    skip_space();
    if (op == "=" && ((*p_ == 'l' && p_[1] == 'l' && !is_name(p_[2])) || wide_hint_ == 0x18)) {
        if (*p_ == 'l') p_ += 2;
        if (!what.field.empty()) return fail(places.imm, "a member's place has 32 bits: leave the ll out");
        return wide(dst, dst_at, what.number, places.imm, Wide::number);
    }
    const Form *form = isa::kFormTable.find(Shape::alu_imm, dst.bits, op);
    if (form == nullptr) return fail(op_at, "there is no operator `" + std::string(op) + "`");
    if (what.number < INT64_MIN || what.number > INT64_MAX)
        return fail(places.imm, "the number doesn't fit in 32 bits",
                    op == "=" && dst.bits == 64 ? "r" + std::to_string(dst.number) + " = NUMBER ll takes any 64-bit number" : "");
    operands.imm = static_cast<int64_t>(what.number);
    return emit(*form, operands, places, what.field);
}

} // namespace rawbpf::inline v0::assembling
