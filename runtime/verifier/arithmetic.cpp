// Transfer functions: ranges in, a range out.
//
//      r1: 0 to 10, r2: 5 to 6        r1 += r2    5 to 16        both ends are added
//                                     r1 -= r2    -6 to 5        signed; unsigned it may wrap around, so anything
//                                     r1 &= 7     0 to 7         no more than the smaller side, and what the bits say
//
// A range survives an operation only if no number in it overflows, or (sums, 6.17) if all of them do. Otherwise the verifier
// drops the range and keeps only the known bits; settle() then deduces what it can from these. After a division, the verifier
// knows nothing about the result, even if it knows both sides; so does the kernel up to 6.19. It doesn't even know that the upper
// half of a 32-bit result is zero: 6.10 and newer return before they say so, and so do older ones where the operand isn't known.
#include "runtime/verifier/arithmetic.h"

#include <algorithm>
#include <limits>

namespace rawbpf::inline v0::verifier {

namespace {

template <class T> void forget(Range<T> &range) { range = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}; }

template <class T> void add_signed(Range<T> &a, const Range<T> &b) {
    Range<T> out{};
    if (__builtin_add_overflow(a.least, b.least, &out.least) || __builtin_add_overflow(a.most, b.most, &out.most)) forget(out);
    a = out;
}
template <class T> void add_unsigned(Range<T> &a, const Range<T> &b, const Deductions &rules) {
    Range<T> out{};
    const bool low = __builtin_add_overflow(a.least, b.least, &out.least),
               high = __builtin_add_overflow(a.most, b.most, &out.most);
    if (rules.wrapped_sums ? low != high : low || high) forget(out);
    a = out;
}
template <class T> void subtract_signed(Range<T> &a, const Range<T> &b) {
    Range<T> out{};
    if (__builtin_sub_overflow(a.least, b.most, &out.least) || __builtin_sub_overflow(a.most, b.least, &out.most)) forget(out);
    a = out;
}
template <class T> void subtract_unsigned(Range<T> &a, const Range<T> &b, const Deductions &rules) {
    Range<T> out{};
    const bool low = __builtin_sub_overflow(a.least, b.most, &out.least),
               high = __builtin_sub_overflow(a.most, b.least, &out.most);
    if (rules.wrapped_sums ? low != high : low || high) forget(out);
    a = out;
}

template <class U> void multiply_unsigned(Range<U> &a, const Range<U> &b) {
    Range<U> out{};
    if (__builtin_mul_overflow(a.most, b.most, &out.most) || __builtin_mul_overflow(a.least, b.least, &out.least)) forget(out);
    a = out;
}
template <class T> void multiply_signed(Range<T> &a, const Range<T> &b) {
    T p[4];
    if (__builtin_mul_overflow(a.most, b.most, &p[0]) || __builtin_mul_overflow(a.most, b.least, &p[1]) ||
        __builtin_mul_overflow(a.least, b.most, &p[2]) || __builtin_mul_overflow(a.least, b.least, &p[3]))
        return forget(a);
    a = {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
// Before 6.14 only products of two that aren't negative, small enough not to overflow, were followed.
void multiply_simply(Bounds &a, const Bounds &b) {
    if (a.s64.least < 0 || b.s64.least < 0 || a.u64.most > UINT32_MAX || b.u64.most > UINT32_MAX) {
        a.forget64();
    } else {
        a.u64 = {a.u64.least * b.u64.least, a.u64.most * b.u64.most};
        a.s64 = static_cast<int64_t>(a.u64.most) < 0
                    ? Range<int64_t>{INT64_MIN, INT64_MAX}
                    : Range<int64_t>{static_cast<int64_t>(a.u64.least), static_cast<int64_t>(a.u64.most)};
    }
    if (a.s32.least < 0 || b.s32.least < 0 || a.u32.most > UINT16_MAX || b.u32.most > UINT16_MAX) {
        a.forget32();
    } else {
        a.u32 = {a.u32.least * b.u32.least, a.u32.most * b.u32.most};
        a.s32 = static_cast<int32_t>(a.u32.most) < 0
                    ? Range<int32_t>{INT32_MIN, INT32_MAX}
                    : Range<int32_t>{static_cast<int32_t>(a.u32.least), static_cast<int32_t>(a.u32.most)};
    }
}

// The signed range of what only the unsigned one is known of.
template <class T, class U> void signed_from(Range<T> &s, const Range<U> &u) {
    if (static_cast<T>(u.least) <= static_cast<T>(u.most))
        s = {static_cast<T>(u.least), static_cast<T>(u.most)};
    else
        forget(s);
}

// Bitwise operations: the bits give the least for and, the most for or; the operands' ends the other end.
void combine_bits(Op op, Bounds &a, const Bounds &b) {
    a.bits = op == Op::and_ ? and_bits(a.bits, b.bits) : op == Op::or_ ? or_bits(a.bits, b.bits) : xor_bits(a.bits, b.bits);
    const Tnum half = low_half(a.bits);
    const auto half_least = static_cast<uint32_t>(half.least()), half_most = static_cast<uint32_t>(half.most());
    switch (op) {
    case Op::and_:
        a.u64 = {a.bits.least(), std::min(a.u64.most, b.u64.most)};
        a.u32 = {half_least, std::min(a.u32.most, b.u32.most)};
        break;
    case Op::or_:
        a.u64 = {std::max(a.u64.least, b.u64.least), a.bits.most()};
        a.u32 = {std::max(a.u32.least, b.u32.least), half_most};
        break;
    default: a.u64 = {a.bits.least(), a.bits.most()}; a.u32 = {half_least, half_most};
    }
    signed_from(a.s64, a.u64);
    signed_from(a.s32, a.u32);
}

// Shifts, by a constant that is less than the width: of others nothing is known (follows()).
void shift_left(Bounds &a, unsigned by, bool half) {
    const Range<int32_t> before = a.s32;
    if (by > 31 || a.u32.most > uint32_t(UINT32_MAX) >> by)
        a.u32 = {0, UINT32_MAX};
    else
        a.u32 = {a.u32.least << by, a.u32.most << by};
    a.s32 = {INT32_MIN, INT32_MAX};
    if (half) {
        a.bits = low_half(shift_left(low_half(a.bits), by));
        return;
    }
    // A shift to the left by 32 and back is how compilers extend a sign: it keeps the signed range of the lower half.
    if (by == 32)
        a.s64 = {int64_t(before.least) * (int64_t(1) << 32), int64_t(before.most) * (int64_t(1) << 32)};
    else
        forget(a.s64);
    if (a.u64.most > UINT64_MAX >> by)
        a.u64 = {0, UINT64_MAX};
    else
        a.u64 = {a.u64.least << by, a.u64.most << by};
    a.bits = shift_left(a.bits, by);
}

void shift_right(Bounds &a, unsigned by, bool half) {
    if (half) {
        a.bits = shift_right(low_half(a.bits), by);
        a.s32 = {INT32_MIN, INT32_MAX};
        a.u32 = {a.u32.least >> by, a.u32.most >> by};
        return;
    }
    a.bits = shift_right(a.bits, by);
    forget(a.s64);
    a.u64 = {a.u64.least >> by, a.u64.most >> by};
    a.forget32();
}

void shift_right_signed(Bounds &a, unsigned by, bool half) {
    if (half) {
        a.s32 = {a.s32.least >> by, a.s32.most >> by};
        a.bits = shift_right_signed(low_half(a.bits), by, 32);
        a.u32 = {0, UINT32_MAX};
        return;
    }
    a.s64 = {a.s64.least >> by, a.s64.most >> by};
    a.bits = shift_right_signed(a.bits, by, 64);
    a.u64 = {0, UINT64_MAX};
    a.forget32();
}

// A constant, in bits and ranges alike.
bool is_constant(const Bounds &b, bool half) { return (half ? b.half_is_known() : b.is_known()) && !b.contradicts(half); }

// Whether anything can be said of the result. The amount of a 32-bit shift is looked at with all its 64 bits, as the kernel does.
bool follows(Op op, bool half, const Bounds &b, const Deductions &rules) {
    // Before 6.10 nothing is said of what is computed with a number whose ranges contradict each other.
    if (!rules.any_operand && b.contradicts(half)) return false;
    switch (op) {
    case Op::add:
    case Op::sub:
    case Op::and_: return true;
    case Op::mul:
    case Op::or_:
    case Op::xor_: return rules.any_operand || is_constant(b, half);
    case Op::lsh:
    case Op::rsh:
    case Op::arsh: return is_constant(b, half) && b.u64.most < (half ? 32 : 64);
    default: return false;
    }
}

} // namespace

Bounds compute(Op op, bool half, Bounds a, Bounds b, const Deductions &rules) {
    if (!follows(op, half, b, rules)) {
        Bounds out;
        if (half && !rules.any_operand && is_constant(b, true)) out.clear_upper_half(rules);
        return out;
    }
    switch (op) {
    case Op::add:
        add_signed(a.s64, b.s64);
        add_signed(a.s32, b.s32);
        add_unsigned(a.u64, b.u64, rules);
        add_unsigned(a.u32, b.u32, rules);
        a.bits = add(a.bits, b.bits);
        break;
    case Op::sub:
        subtract_signed(a.s64, b.s64);
        subtract_signed(a.s32, b.s32);
        subtract_unsigned(a.u64, b.u64, rules);
        subtract_unsigned(a.u32, b.u32, rules);
        a.bits = subtract(a.bits, b.bits);
        break;
    case Op::mul:
        if (rules.products) {
            multiply_unsigned(a.u64, b.u64);
            multiply_unsigned(a.u32, b.u32);
            multiply_signed(a.s64, b.s64);
            multiply_signed(a.s32, b.s32);
        } else {
            multiply_simply(a, b);
        }
        a.bits = multiply(a.bits, b.bits);
        break;
    case Op::and_:
    case Op::or_:
    case Op::xor_: combine_bits(op, a, b); break;
    case Op::lsh: shift_left(a, static_cast<unsigned>(b.u64.least), half); break;
    case Op::rsh: shift_right(a, static_cast<unsigned>(b.u64.least), half); break;
    case Op::arsh: shift_right_signed(a, static_cast<unsigned>(b.u64.least), half); break;
    default: break;
    }
    if (half)
        a.clear_upper_half(rules);
    else
        a.settle(rules);
    if (rules.shared_refine) a.keep_sane();
    return a;
}

} // namespace rawbpf::inline v0::verifier
