// LLVM's pseudo-C, one statement at a time, and what the kernel's prints have instead:
//
//      x = x|n    x op= x|n    x = -x    x = (s8)x    r = le16 r    r = n ll    r = NAME ll
//      x = *(u32 *)(r + n)     *(u32 *)(r + n) = x|n     r0 = *(u8 *)skb[n]
//      lock *(u64 *)(r + n) += x      x = atomic_fetch_add((u64 *)(r + n), x)      x = xchg_64(r + n, x)     ...
//      if x op x|n goto TARGET    goto TARGET    call NAME|n|+n    exit          TARGET: NAME, +n, -n, pc+n
//
// A statement is taken apart into a shape, a symbol and a width, for which opcodes.h has one row or none. The kernel writes
// atomics of 32 bits with rN and knows no difference between -1 and 0xffffffff in a comparison; both are read where nothing else
// can be meant.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include "asm/assembling.h"
#include "asm/helpers.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0::assembling {

namespace {

/// An operator, up to four characters of these: its length.
size_t operator_length(const char *p) {
    size_t n = *p == 's' ? 1 : 0;
    while (n < 4 && (p[n] == '=' || p[n] == '<' || p[n] == '>' || p[n] == '!' || p[n] == '&' || p[n] == '+' || p[n] == '-' ||
                     p[n] == '*' || p[n] == '/' || p[n] == '%' || p[n] == '|' || p[n] == '^')) {
        ++n;
        if (p[n - 1] == '=') break;
    }
    return n;
}

} // namespace

bool Assembler::reg(Register &out) {
    skip_space();
    if (!at_register()) return expected("a register");
    const char *at = p_;
    out.bits = *p_ == 'w' ? 32 : 64;
    unsigned number = static_cast<unsigned>(p_[1] - '0');
    p_ += 2;
    if (is_digit(*p_)) number = number * 10 + static_cast<unsigned>(*p_++ - '0');
    if (number > 10 || (at[1] == '0' && p_ - at == 3))
        return fail(at, "there is no register " + std::string(at, p_) + "; they are " + *at + "0 to " + *at + "10");
    out.number = static_cast<uint8_t>(number);
    return true;
}

bool Assembler::register_bits(const Form &form, Register reg, const char *at) {
    if (form.register_bits == reg.bits) return true;
    return fail(at, std::string("this needs ") + (form.register_bits == 32 ? "a 32-bit register, w" : "a 64-bit register, r") +
                        std::to_string(reg.number));
}

bool Assembler::no_form(const char *at, std::string_view what) {
    return fail(at, "there is no instruction for " + std::string(what), "rawbpf isa lists them");
}

void Assembler::push(const Insn &insn) {
    insns_->push_back(insn);
    ++insn_count_;
    if (insn_count_ > kMostInsns && !stop_) {
        stop_ = true;
        fail(p_, "more than 1000000 instructions");
    }
}

bool Assembler::emit(const Form &form, const Operands &operands, const Places &places, std::string_view field) {
    const Encoded encoded = encode(form, operands);
    if (!encoded) {
        const char *at = nullptr;
        switch (encoded.problem) {
        case Problem::read_only: at = writes_dst(form.shape) ? places.dst : places.src; break;
        case Problem::offset_range: at = places.off; break;
        case Problem::no_such_register: at = operands.dst > 10 ? places.dst : places.src; break;
        default: at = places.imm;
        }
        // The encoder's words are those of the builder in C++, but for this one.
        std::string message = describe(encoded.problem, form, operands);
        if (const size_t word = message.find("load_imm64"); word != std::string::npos)
            message.replace(word, 10, "`rN = number ll`");
        return fail(at != nullptr ? at : p_, std::move(message));
    }
    Function &to = function();
    if (!field.empty()) {
        Ref ref;
        ref.insn = static_cast<uint32_t>(insns_->size());
        ref.kind = RefKind::field;
        ref.symbol = field;
        ref.addend = (form.fields() & kOff) ? operands.off : operands.imm;
        refs_.push_back(std::move(ref));
    }
    if (options_.lines) {
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
    push(encoded.insn);
    if (form.shape == Shape::load_wide) push(encoded.second);
    return true;
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

/// "u32 *)": what stands behind the opening bracket.
bool Assembler::memory_type(unsigned &bits, bool &is_signed) {
    if (!need('(')) return false;
    skip_space();
    const char *at = p_;
    is_signed = *p_ == 's';
    if (*p_ == 'u' || *p_ == 's') {
        bits = p_[1] == '8'                   ? 8
               : p_[1] == '1' && p_[2] == '6' ? 16
               : p_[1] == '3' && p_[2] == '2' ? 32
               : p_[1] == '6' && p_[2] == '4' ? 64
                                              : 0;
        const size_t length = bits == 8 ? 2 : 3;
        if (bits != 0 && !is_name(p_[length])) {
            p_ += length;
            skip_space();
            if (*p_ == '*') {
                ++p_;
                return need(')');
            }
            return expected("`*`");
        }
    }
    p_ = at;
    return expected("a type: u8, u16, u32, u64, s8, s16, s32");
}

/// "(r10 - 8)", "(r1 + event.pid)", "(r1 + @task_struct.mm)"; `destination` says which register of the instruction it is.
bool Assembler::address(Operands &operands, bool destination, Places &places, std::string_view &field) {
    if (!need('(')) return false;
    Register base;
    skip_space();
    const char *at = p_;
    if (!reg(base)) return false;
    if (base.bits != 64) return fail(at, "an address is in a 64-bit register, r" + std::to_string(base.number));
    (destination ? operands.dst : operands.src) = base.number;
    (destination ? places.dst : places.src) = at;
    skip_space();
    places.off = p_;
    if (*p_ == '+' || *p_ == '-') {
        const bool negative = *p_ == '-';
        const char *sign = p_++;
        skip_space();
        Value distance;
        if (*p_ == '@') {
            if (negative) return fail(p_, "a member's place can be added, not subtracted");
            if (!value(distance)) return false;
        } else if (is_digit(*p_)) { // a literal, mostly
            bool is_hex;
            if (!literal(distance.number, is_hex)) return false;
            if (negative) distance.number = -distance.number;
            skip_space();
            if (*p_ != ')' && *p_ != ',') {
                p_ = sign;
                if (!binary(distance.number, 4, 0)) return false;
            }
        } else {
            p_ = sign;
            if (!binary(distance.number, 4, 0)) return false;
        }
        if (distance.number < INT16_MIN || distance.number > INT16_MAX)
            return fail(places.off, "an offset may be -32768 to 32767");
        operands.off = static_cast<int64_t>(distance.number);
        field = distance.field;
    }
    skip_space();
    if (*p_ == ',') return true; // xchg_64(r1 + 8, r2)
    return *p_ == ')' ? need(')') : expected("`)`");
}

/// dst = *(u32 *)(r1 + 8), and packets: r0 = *(u8 *)skb[14]
bool Assembler::load(Register dst, const char *dst_at) {
    const char *at = p_++;
    unsigned bits = 0;
    bool is_signed = false;
    if (!memory_type(bits, is_signed)) return false;
    Operands operands;
    Places places;
    places.dst = dst_at;
    if (eat_word("skb")) {
        if (!need('[')) return false;
        skip_space();
        if (dst.number != 0 || dst.bits != 64) return fail(dst_at, "a load from the packet goes to r0");
        const bool indirect = at_register();
        if (indirect) {
            Register index;
            places.src = p_;
            if (!reg(index)) return false;
            operands.src = index.number;
            if (index.bits != 64) return fail(places.src, "an index is in a 64-bit register, r" + std::to_string(index.number));
        }
        skip_space();
        places.imm = p_;
        Number distance = 0;
        if (!indirect) {
            if (!number(distance)) return false;
        } else if (*p_ == '+' || *p_ == '-') {
            if (!binary(distance, 4, 0)) return false;
        }
        if (distance < INT32_MIN || distance > UINT32_MAX) return fail(places.imm, "an offset into a packet has 32 bits");
        operands.imm = static_cast<int64_t>(distance);
        if (!need(']')) return false;
        const Form *form = is_signed ? nullptr
                                     : isa::kFormTable.find(indirect ? Shape::packet_ind : Shape::packet_abs, bits,
                                                            bits == 8    ? "u8"
                                                            : bits == 16 ? "u16"
                                                                         : "u32");
        if (form == nullptr) return no_form(at, "a load of this type from a packet");
        return emit(*form, operands, places);
    }
    std::string_view field;
    if (!address(operands, false, places, field)) return false;
    constexpr std::string_view kUnsigned[] = {"u8", "u16", "u32", "u64"}, kSigned[] = {"s8", "s16", "s32", "s64"};
    const size_t size = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3;
    const Form *form = isa::kFormTable.find(Shape::load, bits, (is_signed ? kSigned : kUnsigned)[size]);
    if (form == nullptr) return no_form(at, "a load of this type");
    // LLVM writes loads below 64 bits with wN from -mcpu=v3 on: the upper half is zero either way. Not so when the sign is
    // extended.
    if (dst.bits == 32 && (is_signed || bits == 64)) return register_bits(*form, dst, dst_at);
    operands.dst = dst.number;
    return emit(*form, operands, places, field);
}

/// *(u32 *)(r1 + 8) = r2|5
bool Assembler::store() {
    const char *at = p_++;
    unsigned bits = 0;
    bool is_signed = false;
    if (!memory_type(bits, is_signed)) return false;
    Operands operands;
    Places places;
    std::string_view field;
    if (!address(operands, true, places, field) || !need('=')) return false;
    if (is_signed) return no_form(at, "a store of a signed type; a store keeps the bits, write u" + std::to_string(bits));
    skip_space();
    constexpr std::string_view kTypes[] = {"u8", "u16", "u32", "u64"};
    const std::string_view symbol = kTypes[bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : 3];
    if (at_register()) {
        Register from;
        places.src = p_;
        if (!reg(from)) return false;
        const Form *form = isa::kFormTable.find(Shape::store_reg, bits, symbol);
        if (from.bits == 32 && bits == 64) return register_bits(*form, from, places.src);
        operands.src = from.number;
        return emit(*form, operands, places, field);
    }
    places.imm = p_;
    Number what = 0;
    if (!number(what)) return false;
    const Form *form = isa::kFormTable.find(Shape::store_imm, bits, symbol);
    if (what < INT64_MIN || what > INT64_MAX)
        return fail(places.imm, describe(Problem::value_range, *form, {0, 0, 0, INT64_MAX}));
    operands.imm = static_cast<int64_t>(what);
    return emit(*form, operands, places, field);
}

/// lock *(u64 *)(r1 + 8) += r2
bool Assembler::lock() {
    skip_space();
    const char *at = p_;
    if (*p_ != '*') return mnemonic("lock", at);
    ++p_;
    unsigned bits = 0;
    bool is_signed = false;
    Operands operands;
    Places places;
    std::string_view field;
    if (!memory_type(bits, is_signed) || !address(operands, true, places, field)) return false;
    skip_space();
    const char *op_at = p_;
    const size_t length = operator_length(p_);
    const Form *form = is_signed ? nullptr : isa::kFormTable.find(Shape::atomic, bits, {p_, length});
    if (form == nullptr) {
        if (is_signed || bits < 32) return no_form(at, "an atomic operation of this type; it may be u32 or u64");
        return fail(op_at, "expected one of += |= &= ^=, found " + found());
    }
    p_ += length;
    skip_space();
    places.src = p_;
    Register from;
    if (!reg(from)) return false;
    if (bits == 64 && from.bits == 32) return register_bits(*form, from, places.src);
    operands.src = from.number;
    return emit(*form, operands, places, field);
}

/// What stands in front of a bracket: atomic_fetch_add, xchg_64, cmpxchg32_32, load_acquire; the kernel's atomic64_fetch_add,
/// atomic_xchg, atomic64_cmpxchg.
bool Assembler::fetch(Register dst, const char *dst_at, std::string_view word, const char *at) {
    Operands operands;
    Places places;
    places.dst = dst_at;
    std::string_view field;
    unsigned bits = 0;
    bool is_signed = false, kernel = false;
    Shape shape = Shape::atomic_fetch;
    std::string symbol(word);
    if (symbol.starts_with("atomic64_")) {
        symbol.erase(6, 2);
        kernel = true;
    }
    if (word == "load_acquire") {
        shape = Shape::load_acquire;
    } else if (word.starts_with("xchg")) {
        shape = Shape::exchange;
    } else if (word.starts_with("cmpxchg")) {
        shape = Shape::compare_swap;
    } else if (symbol == "atomic_xchg") {
        shape = Shape::exchange;
        kernel = true;
    } else if (symbol == "atomic_cmpxchg") {
        shape = Shape::compare_swap;
        kernel = true;
    }
    const bool llvm_exchange = !kernel && (shape == Shape::exchange || shape == Shape::compare_swap);
    if (llvm_exchange) {
        bits = word.ends_with("32_32") ? 32 : 64;
        if (!address(operands, true, places, field)) return false;
    } else {
        if (!need('(') || !memory_type(bits, is_signed) || !address(operands, shape != Shape::load_acquire, places, field))
            return false;
        if (kernel && shape != Shape::atomic_fetch) {
            const bool exchange = shape == Shape::exchange;
            symbol = exchange ? (bits == 32 ? "xchg32_32" : "xchg_64") : bits == 32 ? "cmpxchg32_32" : "cmpxchg_64";
        }
    }
    const Form *form = is_signed ? nullptr : isa::kFormTable.find(shape, bits, symbol);
    if (form == nullptr) {
        if (shape == Shape::atomic_fetch && isa::kFormTable.find(shape, 64, symbol) == nullptr) {
            Nearest near(word);
            for (const Form &known : isa::kForms)
                if (known.shape >= Shape::atomic_fetch && known.shape <= Shape::load_acquire) near.offer(known.symbol);
            return fail(at, "there is no operation `" + std::string(word) + "`", near.hint());
        }
        return no_form(at, std::string(word) + " of this type");
    }
    if (shape == Shape::load_acquire) {
        operands.dst = dst.number;
        return register_bits(*form, dst, dst_at) && need(')') && emit(*form, operands, places, field);
    }
    if (!need(',')) return false;
    skip_space();
    Register from;
    const char *first_at = p_;
    if (!reg(from)) return false;
    const bool r_for_w = form->register_bits == 32 && !llvm_exchange && dst.bits == 64; // as the kernel writes it
    if (!r_for_w && !register_bits(*form, dst, dst_at)) return false;
    if (from.bits != dst.bits) return register_bits(*form, from, first_at);
    if (shape == Shape::compare_swap) {
        if (dst.number != 0) return fail(dst_at, std::string("the result goes to ") + *dst_at + "0");
        if (from.number != 0) return fail(first_at, std::string("what is expected there is in ") + *dst_at + "0");
        if (!need(',')) return false;
        skip_space();
        first_at = p_;
        if (!reg(from)) return false;
        if (from.bits != dst.bits) return register_bits(*form, from, first_at);
    }
    places.src = first_at;
    operands.src = from.number;
    if (!need(')')) return false;
    if (shape != Shape::compare_swap && from.number != dst.number) {
        // The machine leaves the old value where the operand was. Saying it of another register takes two instructions.
        if (dst.number == operands.dst) return fail(dst_at, "the result would overwrite the address before it is used");
        const Form *move = isa::kFormTable.find(Shape::alu_reg, form->register_bits == 32 ? 32 : 64, "=");
        if (!emit(*move, {dst.number, from.number}, places)) return false;
        operands.src = dst.number;
        places.src = dst_at;
    }
    return emit(*form, operands, places, field);
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
        if (*p_ == 'r' || *p_ == 'w') {
            if (const Form *form = isa::kFormTable.find(Shape::byte_swap,
                                                        word.ends_with("16")   ? 16
                                                        : word.ends_with("32") ? 32
                                                                               : 64,
                                                        word);
                form != nullptr && at_register()) {
                places.src = p_;
                Register from;
                if (!reg(from)) return false;
                if (!register_bits(*form, dst, dst_at)) return false;
                if (from.number != dst.number || from.bits != dst.bits)
                    return fail(places.src, "bytes are swapped in place: r" + std::to_string(dst.number) + " = " +
                                                std::string(word) + " r" + std::to_string(dst.number));
                return emit(*form, {dst.number}, places);
            }
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

// ---- jumps and calls ------------------------------------------------------------------------------------------------------

/// Where a jump goes: a distance in `out`, or a label, to which `out` is added.
bool Assembler::target(Value &out, std::string_view &label_name, bool &kernel_print) {
    skip_space();
    kernel_print = p_[0] == 'p' && p_[1] == 'c' && (p_[2] == '+' || p_[2] == '-');
    if (kernel_print) p_ += 2;
    if (*p_ == '+' || *p_ == '-') {
        if (!binary(out.number, 4, 0)) return false;
    } else {
        if (is_digit(*p_)) return expected("a label, or a distance with its sign: +3, -3");
        label_name = name();
        if (label_name.empty()) return expected("a label, or a distance like +3");
    }
    skip_space();
    if (*p_ == '<' && is_name(p_[1])) { // llvm-objdump's <function+0x78>
        const char *end = p_;
        while (*end != '>' && *end != '\n') ++end;
        if (*end == '>') p_ = end + 1;
    }
    return true;
}

bool Assembler::emit_jump(const Form &form, Operands operands, Places places, bool) {
    skip_space();
    const char *at = p_;
    Value distance;
    std::string_view label_name;
    bool kernel_print;
    if (!target(distance, label_name, kernel_print)) return false;
    // The kernel prints the 32 bits of a comparison's number in hexadecimal, whatever they mean.
    if (form.shape == Shape::branch_imm && form.register_bits == 64 && operands.imm > INT32_MAX && operands.imm <= UINT32_MAX &&
        (kernel_print || wide_hint_ >= 0))
        operands.imm = static_cast<int32_t>(static_cast<uint32_t>(operands.imm));
    (form.shape == Shape::jump_long ? places.imm : places.off) = at;
    if (label_name.empty()) {
        if (distance.number < INT32_MIN || distance.number > INT32_MAX) return fail(at, "the jump is too long");
        (form.shape == Shape::jump_long ? operands.imm : operands.off) = static_cast<int64_t>(distance.number);
        return emit(form, operands, places);
    }
    if (!emit(form, operands, places)) return false;
    jumps_.push_back({static_cast<uint32_t>(insns_->size() - 1), label(label_name), at, source_, 0});
    return true;
}

bool Assembler::jump(const Form &form) {
    skip_space();
    if (form.shape != Shape::jump_reg && form.shape != Shape::call_reg) return emit_jump(form, {}, {}, false);
    Places places;
    Operands operands;
    if (*p_ == '%') return plain_register(operands.dst, places.dst) && emit(form, operands, places);
    places.dst = p_;
    Register to;
    if (!reg(to)) return false;
    operands.dst = to.number;
    return register_bits(form, to, places.dst) && emit(form, operands, places);
}

/// if r1 s> 5 goto TARGET
bool Assembler::branch() {
    skip_space();
    Places places;
    places.dst = p_;
    Register left;
    if (!reg(left)) return false;
    skip_space();
    const char *op_at = p_;
    const size_t length = operator_length(p_);
    // "<-5": a sign belongs to the number.
    std::string_view op(p_, length);
    while (op.size() > 1 && (op.back() == '-' || op.back() == '+')) op.remove_suffix(1);
    if (op.size() == 1 && (op[0] == '=' || op[0] == '!') && p_[1] == '=') op = {p_, 2};
    p_ += op.size();
    Operands operands;
    operands.dst = left.number;
    skip_space();
    const Form *form;
    if (at_register()) {
        Register right;
        places.src = p_;
        if (!reg(right)) return false;
        form = isa::kFormTable.find(Shape::branch_reg, left.bits, op);
        operands.src = right.number;
        if (form != nullptr && !register_bits(*form, right, places.src)) return false;
    } else {
        form = isa::kFormTable.find(Shape::branch_imm, left.bits, op);
        if (form != nullptr) {
            places.imm = p_;
            Number right = 0;
            if (!number(right)) return false;
            if (right < INT64_MIN || right > INT64_MAX) return fail(places.imm, "the number doesn't fit in 32 bits");
            operands.imm = static_cast<int64_t>(right);
        }
    }
    if (form == nullptr) {
        p_ = op_at;
        return expected("a comparison: == != < <= > >= s< s<= s> s>= &");
    }
    if (!eat_word("goto")) return expected("`goto`");
    return emit_jump(*form, operands, places, false);
}

/// A call of a kernel function whose name the loader finds in BTF.
bool Assembler::call_kfunc(std::string_view symbol, const Places &places) {
    if (!emit(*isa::find("call_kfunc"), {}, places)) return false;
    Ref ref;
    ref.insn = static_cast<uint32_t>(insns_->size() - 1);
    ref.kind = RefKind::kfunc;
    ref.symbol = symbol;
    refs_.push_back(std::move(ref));
    return true;
}

/// call 5, call bpf_ktime_get_ns, call bpf_ktime_get_ns#5, call function, call +3, call pc+3, call kfunc NAME
bool Assembler::call() {
    skip_space();
    const char *at = p_;
    Places places;
    places.imm = at;
    if (is_digit(*p_)) {
        Number number = 0;
        if (!this->number(number)) return false;
        if (number > UINT32_MAX) return fail(at, "a helper's number has 32 bits");
        return emit(*isa::find("call"), {0, 0, 0, static_cast<int64_t>(number)}, places);
    }
    if (*p_ == '+' || *p_ == '-' || (*p_ == 'p' && p_[1] == 'c' && (p_[2] == '+' || p_[2] == '-'))) {
        Value distance;
        std::string_view label_name;
        bool kernel_print;
        if (!target(distance, label_name, kernel_print)) return false;
        if (distance.number < INT32_MIN || distance.number > INT32_MAX) return fail(at, "the call is too far");
        return emit(*isa::find("call_local"), {0, 0, 0, static_cast<int64_t>(distance.number)}, places);
    }
    std::string_view word = name();
    if (word.empty()) return expected("what is called: a helper, a function, a number");
    skip_space();
    if ((word == "helper" || word == "local") && !at_end()) return call(); // the conformance dialect says which
    if ((word == "kfunc" || word == "runtime") && !at_end()) {
        places.imm = p_;
        if (is_digit(*p_)) {
            Operands operands;
            Number id = 0;
            if (!number(id)) return false;
            if (id > UINT32_MAX) return fail(places.imm, "a BTF id has 32 bits");
            operands.imm = static_cast<int64_t>(id);
            if (eat_word("module") && !number(operands.off, INT16_MIN, INT16_MAX, "a module's index")) return false;
            return emit(*isa::find("call_kfunc"), operands, places);
        }
        word = name();
        if (word.empty()) return expected("the name of a kernel function");
        return call_kfunc(word, places);
    }
    if (*p_ == '#') {
        if (is_digit(p_[1]) || (p_[1] == '-' && is_digit(p_[2]))) { // the kernel's name#number
            ++p_;
            int64_t id = 0;
            const char *id_at = p_;
            if (!number(id, INT32_MIN, UINT32_MAX, "a helper's number")) return false;
            const HelperInfo *helper = find_helper(word);
            if (word == "unknown" || (helper != nullptr && helper->id == id))
                return emit(*isa::find("call"), {0, 0, 0, static_cast<int64_t>(static_cast<uint32_t>(id))}, places);
            if (helper != nullptr)
                return fail(id_at, "the helper `" + std::string(word) + "` has the number " + std::to_string(helper->id));
            if (word == "kernel-function") word = {};
            return call_kfunc(word, places);
        }
    }
    if (!emit(*isa::find("call"), {}, places)) return false;
    symbols_.push_back({static_cast<uint32_t>(out_.unit.functions.size() - 1), static_cast<uint32_t>(insns_->size() - 1), true,
                        word, 0, at, source_});
    return true;
}

} // namespace rawbpf::inline v0::assembling
