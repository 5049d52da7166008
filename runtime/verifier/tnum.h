// SPDX-License-Identifier: MIT
// Tnum, a "tristate number": each bit of a 64-bit value is known to be 0, known to be 1, or unknown. PURE.
//
//      r1 = *(u8 *)(r0 + 0)     00...0 ????????     value 0, mask 0xff: the upper 56 bits are known to be 0
//      r1 <<= 2                 00...? ??????00     the two lowest are known to be 0, too
#pragma once

#include <bit>
#include <cstdint>

namespace rawbpf::inline v0::verifier {

/// A set bit of `mask` is an unknown bit, and is 0 in `value`. The others are as in `value`.
struct Tnum {
    uint64_t value = 0,    ///< the known bits
        mask = UINT64_MAX; ///< the unknown ones

    /// Equal in both.
    friend constexpr bool operator==(Tnum, Tnum) = default;
    /// Whether no bit is unknown.
    [[nodiscard]] constexpr bool is_known() const { return mask == 0; }
    /// The least and the greatest number, unsigned, that it can be.
    ///@{
    [[nodiscard]] constexpr uint64_t least() const { return value; }
    [[nodiscard]] constexpr uint64_t most() const { return value | mask; }
    ///@}
};

/// Exactly `value`.
[[nodiscard]] constexpr Tnum tnum_of(uint64_t value) { return {value, 0}; }
/// What all numbers from `least` to `most` have in common: the bits above the highest one in which the two differ.
[[nodiscard]] constexpr Tnum tnum_range(uint64_t least, uint64_t most) {
    const int varying = 64 - std::countl_zero(least ^ most);
    if (varying == 64) return {};
    const uint64_t mask = (uint64_t(1) << varying) - 1;
    return {least & ~mask, mask};
}

/// What is known of the result when both sides are any of the numbers that they can be.
///@{
[[nodiscard]] Tnum add(Tnum a, Tnum b);
[[nodiscard]] Tnum subtract(Tnum a, Tnum b);
[[nodiscard]] Tnum multiply(Tnum a, Tnum b);
[[nodiscard]] Tnum and_bits(Tnum a, Tnum b);
[[nodiscard]] Tnum or_bits(Tnum a, Tnum b);
[[nodiscard]] Tnum xor_bits(Tnum a, Tnum b);
[[nodiscard]] Tnum shift_left(Tnum a, unsigned by);
[[nodiscard]] Tnum shift_right(Tnum a, unsigned by);
/// Copies of the sign come in from above; `bits`: 32 or 64, how wide the number is.
[[nodiscard]] Tnum shift_right_signed(Tnum a, unsigned by, unsigned bits);
///@}

/// The lowest so many bytes (2, 4 or 8) in the other order; 0 above.
[[nodiscard]] Tnum swap_bytes(Tnum a, unsigned bytes);
/// What is known if both are right of the same number. Where they contradict each other, one of them counts.
[[nodiscard]] Tnum intersect(Tnum a, Tnum b);
/// The lowest `bytes` bytes; what is above them is 0.
[[nodiscard]] constexpr Tnum cut(Tnum a, unsigned bytes) {
    const uint64_t keep = bytes >= 8 ? UINT64_MAX : (uint64_t(1) << bytes * 8) - 1;
    return {a.value & keep, a.mask & keep};
}
/// The lower half, as a number of 32 bits.
[[nodiscard]] constexpr Tnum low_half(Tnum a) { return cut(a, 4); }
/// `a` with another lower half.
[[nodiscard]] Tnum with_low_half(Tnum a, Tnum low);
/// Whether every number of `b` is one of `a`'s.
[[nodiscard]] bool contains(Tnum a, Tnum b);
/// Whether it surely is a multiple of `size`, a power of two.
[[nodiscard]] constexpr bool is_aligned(Tnum a, uint64_t size) { return ((a.value | a.mask) & (size - 1)) == 0; }

} // namespace rawbpf::inline v0::verifier
