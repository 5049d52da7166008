// SPDX-License-Identifier: MIT
// Whole numbers of 128 bits: the compiler's where it has them, and on 32-bit machines the project's own.
//
//      Int128, Uint128      sums and products of 64-bit values, which can't overflow in them
//
// TwoWords is the project's: low and high word, two's complement, with C's operators. It is here on every machine, so that every
// machine's tests try it. A 64-bit machine uses none of it.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>

namespace rawbpf::inline v0 {

/// A whole number of 128 bits, with a sign or without one. Results are cut to 128 bits. A shift is by 0 to 127, a division not by
/// 0.
template <bool Signed> class TwoWords {
  public:
    constexpr TwoWords() = default;
    /// Any whole number of the language fits; one below 0 is extended by its sign.
    template <std::integral T> constexpr TwoWords(T value) // NOLINT(google-explicit-constructor): as the language's numbers are
        : low_(static_cast<uint64_t>(value)), high_(value < T{} ? ~uint64_t{0} : 0) {}
    /// The same bits with the other sign.
    constexpr explicit TwoWords(TwoWords<!Signed> other) : low_(other.low()), high_(other.high()) {}

    /// The lowest bits, as a conversion between the language's numbers.
    template <std::integral T> constexpr explicit operator T() const { return static_cast<T>(low_); }
    /// Whether it isn't 0.
    constexpr explicit operator bool() const { return (low_ | high_) != 0; }
    [[nodiscard]] constexpr uint64_t low() const { return low_; }   ///< the lower 64 bits
    [[nodiscard]] constexpr uint64_t high() const { return high_; } ///< the upper 64 bits

    /// Arithmetic.
    ///@{
    friend constexpr TwoWords operator+(TwoWords a, TwoWords b) {
        const uint64_t low = a.low_ + b.low_;
        return words(low, a.high_ + b.high_ + (low < a.low_));
    }
    friend constexpr TwoWords operator-(TwoWords a, TwoWords b) { return a + ~b + TwoWords(1); }
    friend constexpr TwoWords operator*(TwoWords a, TwoWords b) {
        // The words of 32 bits: four products make the 128 bits of low * low, of the others only the lower half counts.
        const uint64_t a0 = a.low_ & 0xffffffff, a1 = a.low_ >> 32, b0 = b.low_ & 0xffffffff, b1 = b.low_ >> 32;
        const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffff);
        const uint64_t high = a1 * b1 + (middle >> 32) + (other >> 32);
        return words(a.low_ * b.low_, high + a.low_ * b.high_ + a.high_ * b.low_);
    }
    friend constexpr TwoWords operator/(TwoWords a, TwoWords b) {
        const TwoWords out = divide(a.magnitude(), b.magnitude()).quotient;
        return a.negative() != b.negative() ? -out : out;
    }
    friend constexpr TwoWords operator%(TwoWords a, TwoWords b) {
        const TwoWords out = divide(a.magnitude(), b.magnitude()).rest;
        return a.negative() ? -out : out;
    }
    constexpr TwoWords operator-() const { return ~*this + TwoWords(1); }
    ///@}

    /// Bits.
    ///@{
    friend constexpr TwoWords operator&(TwoWords a, TwoWords b) { return words(a.low_ & b.low_, a.high_ & b.high_); }
    friend constexpr TwoWords operator|(TwoWords a, TwoWords b) { return words(a.low_ | b.low_, a.high_ | b.high_); }
    friend constexpr TwoWords operator^(TwoWords a, TwoWords b) { return words(a.low_ ^ b.low_, a.high_ ^ b.high_); }
    constexpr TwoWords operator~() const { return words(~low_, ~high_); }
    friend constexpr TwoWords operator<<(TwoWords a, int by) {
        if (by == 0) return a;
        return by < 64 ? words(a.low_ << by, a.high_ << by | a.low_ >> (64 - by)) : words(0, a.low_ << (by - 64));
    }
    friend constexpr TwoWords operator>>(TwoWords a, int by) {
        if (by == 0) return a;
        const uint64_t sign = a.negative() ? ~uint64_t{0} : 0; // what comes in from above
        if (by == 64) return words(a.high_, sign);
        return by < 64 ? words(a.low_ >> by | a.high_ << (64 - by), a.high_ >> by | sign << (64 - by))
                       : words(a.high_ >> (by - 64) | sign << (128 - by), sign);
    }
    ///@}

    /// The same into the number itself.
    ///@{
    constexpr TwoWords &operator+=(TwoWords b) { return *this = *this + b; }
    constexpr TwoWords &operator-=(TwoWords b) { return *this = *this - b; }
    constexpr TwoWords &operator*=(TwoWords b) { return *this = *this * b; }
    constexpr TwoWords &operator/=(TwoWords b) { return *this = *this / b; }
    constexpr TwoWords &operator%=(TwoWords b) { return *this = *this % b; }
    constexpr TwoWords &operator&=(TwoWords b) { return *this = *this & b; }
    constexpr TwoWords &operator|=(TwoWords b) { return *this = *this | b; }
    constexpr TwoWords &operator^=(TwoWords b) { return *this = *this ^ b; }
    constexpr TwoWords &operator<<=(int by) { return *this = *this << by; }
    constexpr TwoWords &operator>>=(int by) { return *this = *this >> by; }
    ///@}

    /// Order, by value.
    ///@{
    friend constexpr bool operator==(TwoWords a, TwoWords b) { return a.low_ == b.low_ && a.high_ == b.high_; }
    friend constexpr std::strong_ordering operator<=>(TwoWords a, TwoWords b) {
        if (a.negative() != b.negative()) return a.negative() ? std::strong_ordering::less : std::strong_ordering::greater;
        return a.high_ != b.high_ ? a.high_ <=> b.high_ : a.low_ <=> b.low_;
    }
    ///@}

  private:
    struct Divided {
        TwoWords quotient, rest;
    };
    static constexpr TwoWords words(uint64_t low, uint64_t high) {
        TwoWords out;
        out.low_ = low, out.high_ = high;
        return out;
    }
    constexpr bool negative() const { return Signed && high_ >> 63 != 0; }
    constexpr TwoWords<false> magnitude() const { return TwoWords<false>(negative() ? -*this : *this); }
    /// A bit of the quotient a step, as on paper.
    static constexpr Divided divide(TwoWords<false> number, TwoWords<false> by) {
        TwoWords<false> quotient, rest;
        for (int bit = 127; bit >= 0; --bit) {
            const bool beyond = rest.high() >> 63 != 0; // a bit more than 128 for a moment
            rest = rest << 1 | (number >> bit & TwoWords<false>(1));
            if (!beyond && rest < by) continue;
            rest -= by;
            quotient |= TwoWords<false>(1) << bit;
        }
        return {words(quotient.low(), quotient.high()), words(rest.low(), rest.high())};
    }

    uint64_t low_ = 0, high_ = 0;
};

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 Int128;           ///< with a sign
__extension__ typedef unsigned __int128 Uint128; ///< without one
#else
using Int128 = TwoWords<true>;   ///< with a sign
using Uint128 = TwoWords<false>; ///< without one
#endif

} // namespace rawbpf::inline v0
