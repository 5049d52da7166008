// Statements that use memory, in LLVM's pseudo-C and as the kernel prints them:
//
//      x = *(u32 *)(r + n)     *(u32 *)(r + n) = x|n     r0 = *(u8 *)skb[n]
//      lock *(u64 *)(r + n) += x      x = atomic_fetch_add((u64 *)(r + n), x)      x = xchg_64(r + n, x)     ...
//
// The kernel writes atomics of 32 bits with rN.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O2") // -Os, as releases are built, takes three times as long
#endif

#include <algorithm>

#include "asm/assembling.h"
#include "asm/lookup.h"
#include "asm/nearest.h"

namespace rawbpf::inline v0::assembling {

/// "u32 *)": what stands behind the opening bracket.
bool Assembler::memory_type(unsigned &bits, bool &is_signed) {
    if (!need('(')) return false;
    skip_space();
    const char *at = p_;
    is_signed = *p_ == 's';
    if (*p_ == 'u' || *p_ == 's') {
        const unsigned digits = static_cast<unsigned>(isa::load<2>(p_ + 1)); // all four compared at once, none of them likely
        bits = static_cast<unsigned>((digits & 0xff) == '8') << 3 | static_cast<unsigned>(digits == ('1' | '6' << 8)) << 4 |
               static_cast<unsigned>(digits == ('3' | '2' << 8)) << 5 | static_cast<unsigned>(digits == ('6' | '4' << 8)) << 6;
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
        const char *sign = p_++;
        skip_space();
        Value distance;
        if (*p_ == '@') {
            if (*sign == '-') return fail(p_, "a member's place can be added, not subtracted");
            if (!value(distance)) return false;
        } else {
            p_ = sign;
            if (!this->distance(distance.number)) return false;
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
        const Form *form =
            is_signed ? nullptr
                      : isa::kFormTable.find(indirect ? Shape::packet_ind : Shape::packet_abs, bits, unsigned_type(bits));
        if (form == nullptr) return no_form(at, "a load of this type from a packet");
        return emit(*form, operands, places);
    }
    std::string_view field;
    if (!address(operands, false, places, field)) return false;
    constexpr std::string_view kSigned[] = {"s8", "s16", "s32", "s64"};
    const Form *form = isa::kFormTable.find(Shape::load, bits,
                                            is_signed ? kSigned[bits == 8    ? 0
                                                                : bits == 16 ? 1
                                                                : bits == 32 ? 2
                                                                             : 3]
                                                      : unsigned_type(bits));
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
    const std::string_view symbol = unsigned_type(bits);
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
    std::string_view symbol = word;
    char shorter[16];
    if (word.starts_with("atomic64_") && word.size() - 2 <= sizeof shorter) {
        std::copy_n(word.data(), 6, shorter);
        std::copy(word.begin() + 8, word.end(), shorter + 6);
        symbol = {shorter, word.size() - 2};
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
        if (dst.bits == 32 && bits == 64) return register_bits(*form, dst, dst_at); // below that rN and wN are the same
        return need(')') && emit(*form, operands, places, field);
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

} // namespace rawbpf::inline v0::assembling
