// Comparisons: what the verifier learns about the two sides on each branch.
//
//      r1: 0 to 100                if r1 > 7 goto big
//            falls through:  r1 is 0 to 7            goes to big:  r1 is 8 to 100
//
// A comparison of two registers tells something about both: if r1 < r2, then r1 is less than the largest value of r2, and r2 is
// greater than the smallest value of r1. The code needs only four relations, ==, !=, <=, <, and the test of bits. The others are
// the same relations with the sides swapped or negated: "not (a > b)" is a <= b, and "a >= b" is b <= a.
//
// Before 6.8 the kernel compared ranges with constants only; Deductions::shared_refine says which of the two applies.
#include "runtime/verifier/comparison.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace rawbpf::inline v0::verifier {

namespace {

template <class T> std::optional<bool> greater(const Range<T> &a, const Range<T> &b) {
    if (a.least > b.most) return true;
    if (a.most <= b.least) return false;
    return {};
}
template <class T> bool disjoint(const Range<T> &a, const Range<T> &b) { return a.least > b.most || a.most < b.least; }

std::optional<bool> inverted(std::optional<bool> truth) { return truth ? std::optional(!*truth) : truth; }

std::optional<bool> equal(bool half, const Bounds &a, const Bounds &b, const Deductions &rules) {
    const Tnum x = half ? low_half(a.bits) : a.bits, y = half ? low_half(b.bits) : b.bits;
    if (x.is_known() && y.is_known()) return x.value == y.value;
    if (rules.bits_decide && ((x.value ^ y.value) & ~(x.mask | y.mask)) != 0) return false;
    if (!rules.shared_refine) return {}; // some kernels before 6.8 look at the range, 6.1 doesn't
    if (half ? disjoint(a.u32, b.u32) || disjoint(a.s32, b.s32) : disjoint(a.u64, b.u64) || disjoint(a.s64, b.s64)) return false;
    if (!half && (disjoint(a.u32, b.u32) || disjoint(a.s32, b.s32))) return false;
    return {};
}

bool known(const Bounds &b, bool half) { return half ? b.half_is_known() : b.is_known(); }
uint64_t number(const Bounds &b, bool half) { return half ? low_half(b.bits).value : b.number(); }

template <class T> void same(Range<T> &a, Range<T> &b) { a = b = {std::max(a.least, b.least), std::min(a.most, b.most)}; }
void equal_sides(bool half, Bounds &a, Bounds &b) {
    same(a.u32, b.u32);
    same(a.s32, b.s32);
    if (half) {
        const Tnum both = intersect(low_half(a.bits), low_half(b.bits));
        a.bits = with_low_half(a.bits, both);
        b.bits = with_low_half(b.bits, both);
        return;
    }
    same(a.u64, b.u64);
    same(a.s64, b.s64);
    a.bits = b.bits = intersect(a.bits, b.bits);
}

// Only a constant at an end of the range can be taken away from it.
template <class T> void without(Range<T> &range, T number) {
    if (range.least == number) ++range.least;
    if (range.most == number) --range.most;
}
void unequal_sides(bool half, Bounds &a, Bounds &b) {
    if (!known(b, half) && !known(a, half)) return;
    Bounds &of = known(b, half) ? a : b;
    const Bounds &other = known(b, half) ? b : a;
    if (known(of, half)) return; // both are known: which way it goes was decided
    if (half) {
        without(of.u32, static_cast<uint32_t>(number(other, half)));
        without(of.s32, static_cast<int32_t>(number(other, half)));
    } else {
        without(of.u64, number(other, half));
        without(of.s64, static_cast<int64_t>(number(other, half)));
    }
}

void bits_set(bool half, bool truth, Bounds &a, Bounds &b) {
    if (!known(b, half) && !known(a, half)) return;
    Bounds &of = known(b, half) ? a : b;
    const uint64_t mask = number(known(b, half) ? b : a, half);
    if (truth && !std::has_single_bit(mask)) return; // one of several: which isn't known
    if (!truth) {                                    // the kernel forgets the ranges, lest they contradict the bits
        of.forget64();
        of.forget32();
    }
    const Tnum was = half ? low_half(of.bits) : of.bits;
    const Tnum now = truth ? or_bits(was, tnum_of(mask)) : and_bits(was, tnum_of(~mask));
    of.bits = half ? with_low_half(of.bits, low_half(now)) : now;
}

template <class T> void less(Range<T> &a, Range<T> &b, bool or_equal) {
    if (or_equal) {
        a.most = std::min(a.most, b.most);
        b.least = std::max(a.least, b.least);
        return;
    }
    // Nothing is below the least of all, so that an end never wraps around: an empty range says that no run gets here.
    constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
    if (b.most == kLeast || a.least == kMost) {
        a = {kMost, kLeast};
        return;
    }
    a.most = std::min<T>(a.most, static_cast<T>(b.most - 1));
    b.least = std::max<T>(static_cast<T>(a.least + 1), b.least);
}

// Before 6.8 a comparison of 64 bits drops what was known of the lower half, one of 32 bits what was known of the whole.
void keep_one_half(Bounds &of, bool half) {
    if (!half) {
        of.forget32();
        if (of.s64.least >= INT32_MIN && of.s64.least <= INT32_MAX && of.s64.most >= INT32_MIN && of.s64.most <= INT32_MAX)
            of.s32 = {static_cast<int32_t>(of.s64.least), static_cast<int32_t>(of.s64.most)};
        if (of.u64.least <= UINT32_MAX && of.u64.most <= UINT32_MAX)
            of.u32 = {static_cast<uint32_t>(of.u64.least), static_cast<uint32_t>(of.u64.most)};
        return;
    }
    const bool upper_is_zero = (of.bits.value | of.bits.mask) >> 32 == 0;
    of.forget64();
    if (!upper_is_zero) return;
    of.u64 = {of.u32.least, of.u32.most};
    of.s64 = of.s32.least >= 0 && of.s32.most >= 0 ? Range<int64_t>{of.s32.least, of.s32.most} : Range<int64_t>{0, UINT32_MAX};
}

Compare opposite(Compare op) {
    switch (op) {
    case Compare::eq: return Compare::ne;
    case Compare::ne: return Compare::eq;
    case Compare::gt: return Compare::le;
    case Compare::le: return Compare::gt;
    case Compare::ge: return Compare::lt;
    case Compare::lt: return Compare::ge;
    case Compare::sgt: return Compare::sle;
    case Compare::sle: return Compare::sgt;
    case Compare::sge: return Compare::slt;
    case Compare::slt: return Compare::sge;
    case Compare::set: return op;
    }
    return op;
}

} // namespace

std::optional<bool> decide_with_itself(Compare op, bool half, const Bounds &a) {
    switch (op) {
    case Compare::eq:
    case Compare::ge:
    case Compare::le:
    case Compare::sge:
    case Compare::sle: return true;
    case Compare::set:
        if (known(a, half)) return number(a, half) != 0;
        if (half ? a.s32.least <= 0 && a.s32.most >= 0 : a.s64.least <= 0 && a.s64.most >= 0) return {};
        return true;
    default: return false;
    }
}

std::optional<bool> decide(Compare op, bool half, Bounds a, Bounds b, const Deductions &rules) {
    if (!rules.shared_refine && !known(b, half)) return {};
    switch (op) {
    case Compare::eq: return equal(half, a, b, rules);
    case Compare::ne: return inverted(equal(half, a, b, rules));
    case Compare::set: {
        if (!known(b, half)) std::swap(a, b);
        if (!known(b, half)) return {};
        const uint64_t mask = number(b, half);
        if (a.bits.value & mask) return true;
        if (!((a.bits.value | a.bits.mask) & mask)) return false;
        return {};
    }
    case Compare::gt: return half ? greater(a.u32, b.u32) : greater(a.u64, b.u64);
    case Compare::sgt: return half ? greater(a.s32, b.s32) : greater(a.s64, b.s64);
    case Compare::lt: return half ? greater(b.u32, a.u32) : greater(b.u64, a.u64);
    case Compare::slt: return half ? greater(b.s32, a.s32) : greater(b.s64, a.s64);
    case Compare::le: return inverted(half ? greater(a.u32, b.u32) : greater(a.u64, b.u64));
    case Compare::sle: return inverted(half ? greater(a.s32, b.s32) : greater(a.s64, b.s64));
    case Compare::ge: return inverted(half ? greater(b.u32, a.u32) : greater(b.u64, a.u64));
    case Compare::sge: return inverted(half ? greater(b.s32, a.s32) : greater(b.s64, a.s64));
    }
    return {};
}

void refine(Compare op, bool half, bool truth, Bounds &a, Bounds &b, const Deductions &rules) {
    if (!rules.shared_refine && !known(b, half) && !known(a, half)) {
        // Old kernels learn of two unknown sides only that they are equal.
        if (opposite(op) != Compare::set && (truth ? op : opposite(op)) == Compare::eq && !half) {
            equal_sides(half, a, b);
            a.settle(rules);
            b.settle(rules);
        }
        return;
    }
    switch (truth ? op : opposite(op)) {
    case Compare::eq: equal_sides(half, a, b); break;
    case Compare::ne: unequal_sides(half, a, b); break;
    case Compare::set: bits_set(half, truth, a, b); break;
    case Compare::lt: half ? less(a.u32, b.u32, false) : less(a.u64, b.u64, false); break;
    case Compare::le: half ? less(a.u32, b.u32, true) : less(a.u64, b.u64, true); break;
    case Compare::gt: half ? less(b.u32, a.u32, false) : less(b.u64, a.u64, false); break;
    case Compare::ge: half ? less(b.u32, a.u32, true) : less(b.u64, a.u64, true); break;
    case Compare::slt: half ? less(a.s32, b.s32, false) : less(a.s64, b.s64, false); break;
    case Compare::sle: half ? less(a.s32, b.s32, true) : less(a.s64, b.s64, true); break;
    case Compare::sgt: half ? less(b.s32, a.s32, false) : less(b.s64, a.s64, false); break;
    case Compare::sge: half ? less(b.s32, a.s32, true) : less(b.s64, a.s64, true); break;
    }
    if (!rules.shared_refine) keep_one_half(known(b, half) ? a : b, half);
    a.settle(rules);
    b.settle(rules);
    if (!rules.shared_refine) return;
    a.keep_sane();
    b.keep_sane();
}

} // namespace rawbpf::inline v0::verifier
