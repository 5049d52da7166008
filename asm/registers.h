// The registers as C++ values, and what can be written with them.
//
//      r0 .. r9      64 bits; may be read and written
//      r10, fp       the frame pointer; may only be read: `f.mov(r10, 5)` doesn't compile
//      w0 .. w9      their lower halves; writing one clears the upper half
//
//      r6 + 8        a place in memory                    f.load<uint32_t>(r1, r6 + 8)
//      r0 == 0       a condition                          f.jump_if(r0 == 0, out)
//      as_signed(r1) < -5,  r1 & 4
//
// By the calling convention r0 returns, r1 to r5 are arguments and gone after a call, r6 to r9 are kept.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace rawbpf::inline v0 {

/// A 64-bit register that may be read.
class Reg {
  public:
    constexpr explicit Reg(uint8_t number) : number_(number) {}
    [[nodiscard]] constexpr int number() const { return number_; }

  private:
    uint8_t number_;
};
/// One that may be written too.
class WritableReg : public Reg {
  public:
    using Reg::Reg;
};
/// The lower half of a register.
class Reg32 {
  public:
    constexpr explicit Reg32(uint8_t number) : number_(number) {}
    [[nodiscard]] constexpr int number() const { return number_; }

  private:
    uint8_t number_;
};

inline constexpr WritableReg r0{0}, r1{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9};
inline constexpr Reg r10{10}, fp{10};
inline constexpr Reg32 w0{0}, w1{1}, w2{2}, w3{3}, w4{4}, w5{5}, w6{6}, w7{7}, w8{8}, w9{9};

/// A number as C++ has them: any integer or enumerator.
template <class T>
concept Number = std::is_integral_v<T> ||(std::is_enum_v<T> &&std::is_convertible_v<T, long long>);

/// The right-hand side of an operation: a register of the same width, or a number.
template <class R> struct Value {
    bool is_register;
    uint8_t reg = 0;
    int64_t number = 0;

    constexpr Value(R r) : is_register(true), reg(static_cast<uint8_t>(r.number())) {} // NOLINT: implicit, as for those below
    template <Number T> constexpr Value(T n) : is_register(false), number(static_cast<int64_t>(n)) {}
};
using Value64 = Value<Reg>;
using Value32 = Value<Reg32>;

class Code;

/// A place in memory: base register and distance. For stack slots also whose stack it is, and where they begin and end.
struct Mem {
    uint8_t base = 10;
    int64_t off = 0;
    int64_t low = INT64_MIN, limit = INT64_MAX; ///< bytes from `low` up to `limit` (relative to base) may be touched
    const Code *owner = nullptr;                ///< of the stack that it is on

    constexpr Mem(Reg reg, int64_t distance = 0) : base(static_cast<uint8_t>(reg.number())), off(distance) {} // NOLINT
    [[nodiscard]] constexpr Mem operator+(int64_t distance) const {
        Mem moved = *this;
        moved.off += distance;
        return moved;
    }
    [[nodiscard]] constexpr Mem operator-(int64_t distance) const { return *this + -distance; }
};
[[nodiscard]] constexpr Mem operator+(Reg reg, int64_t distance) { return {reg, distance}; }
[[nodiscard]] constexpr Mem operator-(Reg reg, int64_t distance) { return {reg, -distance}; }

/// What a conditional jump asks.
struct Condition {
    std::string_view symbol; ///< as in opcodes.h
    int bits;                ///< 64 or 32
    uint8_t left;
    bool right_is_register;
    uint8_t right;
    int64_t number;
    bool inverted = false; ///< jump when it does not hold ("&" has no opposite of its own)

    template <class R> constexpr Condition(std::string_view op, int width, R l, Value<R> r)
        : symbol(op), bits(width), left(static_cast<uint8_t>(l.number())), right_is_register(r.is_register), right(r.reg),
          number(r.number) {}

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

#define RAWBPF_COMPARE(op, text)                                                                                                 \
    [[nodiscard]] constexpr Condition operator op(Reg left, Reg right) { return {text, 64, left, Value64(right)}; }              \
    [[nodiscard]] constexpr Condition operator op(Reg32 left, Reg32 right) { return {text, 32, left, Value32(right)}; }          \
    template <Number T> [[nodiscard]] constexpr Condition operator op(Reg left, T right) {                                       \
        return {text, 64, left, Value64(right)};                                                                                 \
    }                                                                                                                            \
    template <Number T> [[nodiscard]] constexpr Condition operator op(Reg32 left, T right) {                                     \
        return {text, 32, left, Value32(right)};                                                                                 \
    }
RAWBPF_COMPARE(==, "==")
RAWBPF_COMPARE(!=, "!=")
RAWBPF_COMPARE(<, "<")
RAWBPF_COMPARE(<=, "<=")
RAWBPF_COMPARE(>, ">")
RAWBPF_COMPARE(>=, ">=")
RAWBPF_COMPARE(&, "&")
#undef RAWBPF_COMPARE

/// Comparisons of a register as a signed number: as_signed(r1) < 0.
template <class R> struct Signed {
    R reg;
    [[nodiscard]] constexpr Condition operator<(Value<R> right) const { return {"s<", bits, reg, right}; }
    [[nodiscard]] constexpr Condition operator<=(Value<R> right) const { return {"s<=", bits, reg, right}; }
    [[nodiscard]] constexpr Condition operator>(Value<R> right) const { return {"s>", bits, reg, right}; }
    [[nodiscard]] constexpr Condition operator>=(Value<R> right) const { return {"s>=", bits, reg, right}; }
    static constexpr int bits = std::is_same_v<R, Reg> ? 64 : 32;
};
[[nodiscard]] constexpr Signed<Reg> as_signed(Reg reg) { return {reg}; }
[[nodiscard]] constexpr Signed<Reg32> as_signed(Reg32 reg) { return {reg}; }

} // namespace rawbpf::inline v0
