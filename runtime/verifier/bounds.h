// SPDX-License-Identifier: MIT
// What the verifier knows about a number: five descriptions of one value, each of which may tell more than the others. PURE.
//
//      bits        a multiple of 8; bit 3 is set        (Tnum)
//      u64, s64    from 1 to 100; from -5 to 5
//      u32, s32    the same of the lower half, for code that computes in 32 bits
#pragma once

#include <cstdint>

#include "runtime/verifier/tnum.h"

namespace rawbpf::inline v0::verifier {

/// A range of numbers, both ends included.
template <class T> struct Range {
    T least; ///< the smallest number of the range
    T most;  ///< the largest
    /// Whether both ends are the same.
    friend constexpr bool operator==(const Range &, const Range &) = default;
    /// Whether it is one number alone.
    [[nodiscard]] constexpr bool is_known() const { return least == most; }
    /// Takes away what is outside of another range.
    constexpr void narrow(T low, T high) {
        if (low > least) least = low;
        if (high < most) most = high;
    }
    /// Whether no number of the other range is outside of this one.
    [[nodiscard]] constexpr bool contains(const Range &inner) const { return least <= inner.least && inner.most <= most; }
};

/// How much a kernel deduces of one view from another; newer ones deduce more (rules.h).
struct Deductions {
    bool halves = true;           ///< 64-bit ranges learn of 32-bit ones and of both signs, three times over (6.8)
    bool across_sign = true;      ///< a signed range on both sides of zero learns of the unsigned one (6.17)
    bool across_sign_half = true; ///< the same of 32 bits (6.18)
    bool wrapped_sums = true;     ///< a sum of which both ends wrap around keeps its range (6.17)
    bool products = true;         ///< products of signed ranges (6.14)
    bool bits_decide = true;      ///< numbers of which a known bit differs aren't equal (6.18)
    bool any_operand = true;      ///< products, | and ^ with an operand of which only the range is known (6.10)
    bool shared_refine = true;    ///< a comparison of two ranges says something of both, and their disjointness decides it (6.8)
};

/// A number of which something is known. Anything, at first.
struct Bounds {
    Tnum bits;                                ///< the bits that are known
    Range<uint64_t> u64{0, UINT64_MAX};       ///< as an unsigned number of 64 bits
    Range<int64_t> s64{INT64_MIN, INT64_MAX}; ///< as a signed one
    Range<uint32_t> u32{0, UINT32_MAX};       ///< the lower half as an unsigned number
    Range<int32_t> s32{INT32_MIN, INT32_MAX}; ///< the lower half as a signed one

    /// Whether the same is known of both.
    friend constexpr bool operator==(const Bounds &, const Bounds &) = default;
    /// One number alone.
    [[nodiscard]] static Bounds of(uint64_t number);
    /// Whether it is one number alone.
    [[nodiscard]] bool is_known() const { return bits.is_known(); }
    /// The number, where it is one alone.
    [[nodiscard]] uint64_t number() const { return bits.value; }
    /// The lower half is one number alone.
    [[nodiscard]] bool half_is_known() const { return low_half(bits).is_known(); }
    /// Whether a range is empty: no number is left, so that no run comes here.
    [[nodiscard]] bool is_empty() const;

    /// Each view learns from the others.
    void settle(const Deductions &rules);
    /// Forgets one size.
    ///@{
    void forget64();
    void forget32();
    ///@}
    /// The ranges that follow from `bits` alone.
    void from_bits();
    /// After a 32-bit operation: the upper half is 0.
    void clear_upper_half(const Deductions &rules);
    /// As a load of so many bytes gives it: what is above is 0, or copies of the sign.
    ///@{
    void cut_to(unsigned bytes, const Deductions &rules);
    void extend_sign(unsigned bytes, bool to_half, const Deductions &rules);
    ///@}
    /// Whether every number of `inner` is one of these, in every view.
    [[nodiscard]] bool contains(const Bounds &inner) const;
    /// Whether, on a path that no run takes, a range has no number or several where the bits say one; `half`: of the lower half.
    [[nodiscard]] bool contradicts(bool half) const;
    /// Forgets the ranges if they contradict each other or the bits, as they do where no run comes
    /// (reg_bounds_sanity_check(), 6.8).
    void keep_sane();
    /// Whether that number is one of these. For tests.
    [[nodiscard]] bool holds(uint64_t number) const;
};

} // namespace rawbpf::inline v0::verifier
