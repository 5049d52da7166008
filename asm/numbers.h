// SPDX-License-Identifier: MIT
// Numbers as operands. A constant is checked by the compiler, against what the instruction can hold:
//
//      f.mov(r1, 0x1ffffffff)        doesn't compile: ... misuse::number_out_of_range("a 64-bit operation takes ...")
//      f.lsh(r1, 64)                 doesn't compile
//      f.mov(r1, runtime(n))         n is known only when the program is put together, and is checked then
//
// So a number that isn't a constant has to be marked by runtime(); an unmarked number was checked. The message works like
// this: in a constant expression, a call of a function that isn't constexpr is an error, and compilers show the call.
#pragma once

#include <cstdint>
#include <type_traits>

#include "asm/registers.h"

// clang before 16 takes no consteval constructor in a template whose argument depends on it; there finish() is the one that
// checks.
#if defined(__clang__) && __clang_major__ < 16
#define RAWBPF_CHECKED constexpr
#define RAWBPF_CHECKS 0
#else
#define RAWBPF_CHECKED consteval
#define RAWBPF_CHECKS 1
#endif

namespace rawbpf::inline v0 {

/// A number as C++ has them: any integer, or an enumerator of an unscoped enum.
template <class T>
concept Number = std::is_integral_v<T> ||(std::is_enum_v<T> &&std::is_convertible_v<T, long long>);

namespace misuse {
/// Defined nowhere: a constant expression that calls it doesn't compile, and the error shows `what_is_right`.
void number_out_of_range(const char *what_is_right);
} // namespace misuse

/// A number that the compiler doesn't know, made by runtime(); it is checked when the program is put together.
struct Runtime {
    int64_t number;     ///< the value; of `above` only its 64 bits
    bool above = false; ///< unsigned, and more than INT64_MAX; `number` has the same 64 bits
};
/// Marks a number that isn't a constant: f.mov(r1, runtime(n)). Where n doesn't fit, Builder::finish() says so.
///@{
template <Number T> [[nodiscard]] constexpr Runtime runtime(T n) {
    return {static_cast<int64_t>(n), std::is_unsigned_v<T> && static_cast<int64_t>(n) < 0};
}
[[nodiscard]] constexpr Runtime runtime(Runtime n) { return n; }
///@}

/// What stands on the right of an operation: a register or a number.
struct Source {
    bool is_register = false; ///< then `reg` counts, else `number`
    uint8_t reg = 0;          ///< 0 to 10
    int64_t number = 0;       ///< all 64 bits, whatever the instruction holds
};

/// Which numbers an operation takes.
enum class Range : uint8_t {
    number, ///< all that fit in the instruction
    shift,  ///< 0 to the width - 1
    divisor ///< likewise all, but 0
};

namespace detail {
/// Whether low <= value <= high.
constexpr bool between(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

/// In a constant expression: doesn't compile where the number is out of range. `wide`: of a 64-bit operation.
template <Range range, bool wide> constexpr void check_operand([[maybe_unused]] Runtime n) {
#if RAWBPF_CHECKS
    using misuse::number_out_of_range;
    if constexpr (range == Range::shift && wide) {
        if (n.above || !between(n.number, 0, 63)) number_out_of_range("a 64-bit register is shifted by 0 to 63");
    } else if constexpr (range == Range::shift) {
        if (n.above || !between(n.number, 0, 31)) number_out_of_range("a 32-bit register is shifted by 0 to 31");
    } else {
        if (range == Range::divisor && n.number == 0) number_out_of_range("a division by zero, which the verifier refuses");
        if (wide && !between(n.number, INT32_MIN, INT32_MAX))
            number_out_of_range("a 64-bit operation takes -2147483648 to 2147483647; load_imm64 takes any number");
        if (!wide && (n.above || !between(n.number, INT32_MIN, UINT32_MAX)))
            number_out_of_range("a 32-bit operation takes -2147483648 to 4294967295");
    }
#endif
}
} // namespace detail

/// The right-hand side of an operation: a register of the same width, or a number.
template <class R, Range range = Range::number> struct Value : Source {
    static constexpr bool wide = std::is_same_v<R, Reg>; ///< of a 64-bit operation

    /// A register of that width; a constant, which the compiler checks; or runtime(n), which is checked later. A register of the
    /// other width doesn't compile.
    ///@{
    constexpr Value(R r) : Source{true, static_cast<uint8_t>(r.number()), 0} {} // NOLINT: implicit, as for those below
    template <Number T> RAWBPF_CHECKED Value(T n) : Source{false, 0, static_cast<int64_t>(n)} {
        detail::check_operand<range, wide>(runtime(n));
    }
    constexpr Value(Runtime n) : Source{false, 0, n.above && !wide ? INT64_MAX : n.number} {}
    template <class Other>
    requires(std::is_same_v<Other, Reg32> ? wide : !wide && std::is_base_of_v<Reg, Other>) constexpr Value(Other) {
        static_assert(sizeof(Other) == 0, "r and w registers don't mix in one instruction: w1 is the lower half of r1");
    }
    ///@}
};
/// The right-hand sides of operations with 64 and with 32 bits: of most, of shifts, of divisions.
///@{
using Value64 = Value<Reg>;
using Value32 = Value<Reg32>;
using Shift64 = Value<Reg, Range::shift>;
using Shift32 = Value<Reg32, Range::shift>;
using Divisor64 = Value<Reg, Range::divisor>;
using Divisor32 = Value<Reg32, Range::divisor>;
///@}

/// What is stored into memory of T's width: a register, or a number that fits there as a signed or an unsigned one.
template <class T> struct Stored : Source {
    /// A register, whose low bits are stored; a constant, which the compiler checks; or runtime(n), which is checked later. A
    /// Reg32 doesn't compile.
    ///@{
    constexpr Stored(Reg r) : Source{true, static_cast<uint8_t>(r.number()), 0} {} // NOLINT: implicit, as for those below
    template <Number N> RAWBPF_CHECKED Stored(N n) : Source{false, 0, static_cast<int64_t>(n)} {
#if RAWBPF_CHECKS
        constexpr int kBits = sizeof(T) < 8 ? static_cast<int>(sizeof(T)) * 8 : 33;
        if (sizeof(T) < 8 &&
            (runtime(n).above || !detail::between(number, -(int64_t{1} << (kBits - 1)), (int64_t{1} << kBits) - 1)))
            misuse::number_out_of_range("the number is wider than the memory that it is stored to");
        if (sizeof(T) == 8 && !detail::between(number, INT32_MIN, INT32_MAX))
            misuse::number_out_of_range("a 64-bit store takes -2147483648 to 2147483647; a register takes any number");
#endif
    }
    constexpr Stored(Runtime n) : Source{false, 0, n.above && sizeof(T) < 8 ? INT64_MAX : n.number} {}
    template <class Other>
    requires std::is_same_v<Other, Reg32>
    constexpr Stored(Other) {
        static_assert(sizeof(Other) == 0, "what is stored comes from r0 to r10; store<uint32_t> takes the lower half");
    }
    ///@}
};

/// How far from a register a place in memory is.
struct Distance {
    int64_t bytes; ///< -32768 to 32767, or it is a complaint

    /// A constant, which the compiler checks; or runtime(n), which is checked later.
    ///@{
    template <Number T> RAWBPF_CHECKED Distance(T n) : bytes(static_cast<int64_t>(n)) { // NOLINT: implicit
#if RAWBPF_CHECKS
        if (runtime(n).above || !detail::between(bytes, INT16_MIN, INT16_MAX))
            misuse::number_out_of_range("a place in memory is -32768 to 32767 bytes from its register; add() goes further");
#endif
    }
    constexpr Distance(Runtime n) : bytes(n.above ? INT64_MAX : n.number) {} // NOLINT: implicit
    ///@}
};

/// A width in bits, out of a few.
template <int... Allowed> struct Width {
    int bits; ///< 1 to 64; 0: runtime() of something else

    /// A constant, which the compiler checks; or runtime(n), which is checked later.
    ///@{
    RAWBPF_CHECKED Width(int n) : bits(n) { // NOLINT: implicit
#if RAWBPF_CHECKS
        if (!((n == Allowed) || ...)) misuse::number_out_of_range("this instruction comes in a few widths: see Width<...>");
#endif
    }
    constexpr Width(Runtime n) : bits(n.number > 0 && n.number <= 64 ? static_cast<int>(n.number) : 0) {} // NOLINT: implicit
    ///@}
    /// Whether `bits` is one of the allowed widths.
    [[nodiscard]] constexpr bool is_right() const { return ((bits == Allowed) || ...); }
};

} // namespace rawbpf::inline v0
