// SPDX-License-Identifier: MIT
// The registers as C++ values.
//
//      r0 .. r9      64 bits; may be read and written
//      r10, fp       the frame pointer; may only be read: `f.mov(r10, 5)` doesn't compile
//      w0 .. w9      their lower halves; writing one clears the upper half
//
// By the calling convention, r0 has the result, r1 to r5 are arguments and undefined after a call, and r6 to r9 keep their
// values.
#pragma once

#include <cstdint>
#include <type_traits>

namespace rawbpf::inline v0 {

/// A 64-bit register that may be read.
class Reg {
  public:
    /// Register `number`, 0 to 10; not checked here, instructions of another number are refused.
    constexpr explicit Reg(uint8_t number) : number_(number) {}
    /// 0 to 10.
    [[nodiscard]] constexpr int number() const { return number_; }

  private:
    uint8_t number_;
};
/// The lower half of a register.
class Reg32 {
  public:
    /// The half of register `number`, 0 to 10; not checked here, instructions of another number are refused.
    constexpr explicit Reg32(uint8_t number) : number_(number) {}
    /// 0 to 10.
    [[nodiscard]] constexpr int number() const { return number_; }

  private:
    uint8_t number_;
};
/// A 64-bit register that may be written, too.
class WritableReg : public Reg {
  public:
    /// WritableReg(number), as Reg has it.
    using Reg::Reg;
    /// There for its message: a Reg never becomes a WritableReg.
    template <class R>
    requires std::is_same_v<R, Reg>
    constexpr WritableReg(R reg) : Reg(reg) { // NOLINT: implicit
        static_assert(sizeof(R) == 0, "this register can't be written: r10 is the frame pointer (r0 to r9 are WritableReg)");
    }
};

/// A register of 64 bits.
template <class R>
concept FullRegister = std::is_base_of_v<Reg, R>;
/// The lower half of a register.
template <class R>
concept HalfRegister = std::is_same_v<R, Reg32>;

/// The registers that may be written.
///@{
inline constexpr WritableReg r0{0}, r1{1}, r2{2}, r3{3}, r4{4}, r5{5}, r6{6}, r7{7}, r8{8}, r9{9};
///@}
/// The frame pointer, one behind the last byte of the stack; it may only be read.
///@{
inline constexpr Reg r10{10}, fp{10};
///@}
/// Their lower halves.
///@{
inline constexpr Reg32 w0{0}, w1{1}, w2{2}, w3{3}, w4{4}, w5{5}, w6{6}, w7{7}, w8{8}, w9{9};
///@}

} // namespace rawbpf::inline v0
