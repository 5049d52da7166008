// SPDX-License-Identifier: MIT
// Operands beside registers and numbers: places in memory, and conditions.
//
//      r6 + 8        a place in memory                    f.load<uint32_t>(r1, r6 + 8)
//      r0 == 0       a condition                          f.jump_if(r0 == 0, out)
//      as_signed(r1) < -5,  r1 & 4
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "asm/numbers.h"
#include "asm/registers.h"

namespace rawbpf::inline v0 {

/// A place in memory: base register and distance. For stack slots also whose stack it is, and where they begin and end.
struct Mem {
    uint8_t base = 10;           ///< register 0 to 10
    int64_t off = 0;             ///< bytes from there; checked when the instruction is put together
    int64_t low = INT64_MIN,     ///< of a stack slot, its first byte, in bytes from base; INT64_MIN: not checked
        limit = INT64_MAX;       ///< the byte behind its last one; INT64_MAX: not checked
    const void *owner = nullptr; ///< the Code on whose stack it is; nullptr: it is no stack slot of Code

    /// The place that the register points at, or one so many bytes behind it.
    ///@{
    constexpr Mem(Reg reg) : base(static_cast<uint8_t>(reg.number())) {} // NOLINT: implicit
    constexpr Mem(Reg reg, Distance distance) : base(static_cast<uint8_t>(reg.number())), off(distance.bytes) {}
    ///@}
    /// The place so many bytes further, or back; the slot is the same.
    ///@{
    [[nodiscard]] constexpr Mem operator+(Distance distance) const { return moved(distance.bytes); }
    [[nodiscard]] constexpr Mem operator-(Distance distance) const { return moved(-distance.bytes); }
    ///@}

  private:
    [[nodiscard]] constexpr Mem moved(int64_t by) const {
        Mem other = *this;
        if (__builtin_add_overflow(off, by, &other.off)) other.off = by < 0 ? INT64_MIN : INT64_MAX;
        return other;
    }
};
/// The place so many bytes behind, or in front of, the one that the register points at.
///@{
[[nodiscard]] constexpr Mem operator+(Reg reg, Distance distance) { return {reg, distance}; }
[[nodiscard]] constexpr Mem operator-(Reg reg, Distance distance) { return Mem(reg) - distance; }
///@}

/// A place that a T is read from or written to. Where the compiler knows how large it is (a slot of Code::stack<U>), it checks.
template <class T> struct MemOf : Mem {
    /// From a register, a Mem, or a slot. A slot with fewer bytes than T doesn't compile.
    template <class M>
    requires std::is_convertible_v<M, Mem>
    constexpr MemOf(const M &place) : Mem(place) { // NOLINT: implicit
        if constexpr (requires { M::kBytes; })
            static_assert(sizeof(T) <= M::kBytes, "this reaches beyond the end of the stack slot, which is smaller");
    }
};

/// What a conditional jump asks.
struct Condition {
    std::string_view symbol; ///< as in opcodes.h
    int bits;                ///< 64 or 32
    uint8_t left;            ///< register 0 to 10
    Source right;            ///< a register of the same width, or a number
    bool inverted = false;   ///< jump when it does not hold ("&" has no opposite of its own)

    /// What the comparisons below make; `op` is a symbol of opcodes.h that lives as long: "==", "s<", "&".
    template <class R> constexpr Condition(std::string_view op, R l, const Value<R> &r)
        : symbol(op), bits(Value<R>::wide ? 64 : 32), left(static_cast<uint8_t>(l.number())), right(r) {}

    /// The condition that holds when this one doesn't.
    [[nodiscard]] constexpr Condition operator!() const {
        constexpr std::string_view kOpposites[][2] = {{"==", "!="}, {">", "<="}, {"<", ">="}, {"s>", "s<="}, {"s<", "s>="}};
        Condition other = *this;
        for (auto &pair : kOpposites) {
            if (symbol == pair[0]) return other.symbol = pair[1], other;
            if (symbol == pair[1]) return other.symbol = pair[0], other;
        }
        other.inverted = !inverted;
        return other;
    }
};

// The last two are there for their message: what they take never compiles.
#define RAWBPF_COMPARE(op, text)                                                                                                 \
    [[nodiscard]] constexpr Condition operator op(Reg left, Reg right) { return {text, left, Value64(right)}; }                  \
    [[nodiscard]] constexpr Condition operator op(Reg32 left, Reg32 right) { return {text, left, Value32(right)}; }              \
    [[nodiscard]] constexpr Condition operator op(Reg left, Value64 right) { return {text, left, right}; }                       \
    [[nodiscard]] constexpr Condition operator op(Reg32 left, Value32 right) { return {text, left, right}; }                     \
    template <FullRegister L, HalfRegister R> [[nodiscard]] constexpr Condition operator op(L left, R right) {                   \
        return {text, Reg(left), Value64(right)};                                                                                \
    }                                                                                                                            \
    template <HalfRegister L, FullRegister R> [[nodiscard]] constexpr Condition operator op(L left, R right) {                   \
        return {text, left, Value32(right)};                                                                                     \
    }
/// A condition for jumps: two registers of one width, or a register and a number, compared as unsigned numbers. `&`: some bit is
/// set in both. Registers of different widths don't compile.
///@{
RAWBPF_COMPARE(==, "==")
RAWBPF_COMPARE(!=, "!=")
RAWBPF_COMPARE(<, "<")
RAWBPF_COMPARE(<=, "<=")
RAWBPF_COMPARE(>, ">")
RAWBPF_COMPARE(>=, ">=")
RAWBPF_COMPARE(&, "&")
///@}
#undef RAWBPF_COMPARE

/// Comparisons of a register as a signed number: as_signed(r1) < 0.
template <class R> struct Signed {
    R reg; ///< what as_signed() was given
    /// A condition for jumps: the register against one of the same width, or a number, both signed.
    ///@{
    [[nodiscard]] constexpr Condition operator<(Value<R> right) const { return {"s<", reg, right}; }
    [[nodiscard]] constexpr Condition operator<=(Value<R> right) const { return {"s<=", reg, right}; }
    [[nodiscard]] constexpr Condition operator>(Value<R> right) const { return {"s>", reg, right}; }
    [[nodiscard]] constexpr Condition operator>=(Value<R> right) const { return {"s>=", reg, right}; }
    ///@}
};
/// The register as a signed number of 64 or 32 bits, to compare: f.jump_if(as_signed(r1) < 0, out).
///@{
[[nodiscard]] constexpr Signed<Reg> as_signed(Reg reg) { return {reg}; }
[[nodiscard]] constexpr Signed<Reg32> as_signed(Reg32 reg) { return {reg}; }
///@}

} // namespace rawbpf::inline v0
