// SPDX-License-Identifier: MIT
// The methods for single instructions, shared by two classes: Code, which builds a unit at run time, and ConstantCode, whose
// programs the C++ compiler finishes.
//
// Each method is one instruction. Both classes share the names of the methods and the checks at compile time; each class
// (Self) puts the instruction together itself: operate(), memory() and similar.
#pragma once

#include <type_traits>

#include "asm/encode.h"
#include "asm/opcodes.h"
#include "asm/operands.h"
#include "asm/where.h"

namespace rawbpf::inline v0 {

/// The operands of an instruction that these make: a right-hand side, a place to load from or to store to. `imm` of a store is
/// the number stored; then `src` is 0.
///@{
[[nodiscard]] constexpr Operands operands_of(int dst, const Source &right) {
    Operands out;
    out.dst = dst;
    if (right.is_register)
        out.src = right.reg;
    else
        out.imm = right.number;
    return out;
}
[[nodiscard]] constexpr Operands operands_of_load(int dst, const Mem &from) {
    return {.dst = dst, .src = from.base, .off = from.off, .imm = 0};
}
[[nodiscard]] constexpr Operands operands_of_store(const Mem &to, int src, int64_t imm = 0) {
    return {.dst = to.base, .src = src, .off = to.off, .imm = imm};
}
///@}
/// The form of the jump that asks this; Condition::inverted is left to the caller.
[[nodiscard]] constexpr const Form &form_of(const Condition &condition) {
    return *find_form(condition.right.is_register ? Shape::branch_reg : Shape::branch_imm, condition.symbol, condition.bits);
}

/// The methods that write one instruction each. Self puts it together, and says what a mistake is: a complaint of Code, an error
/// of the compiler in ConstantCode. A method that takes a Reg32 works with 32 bits, and the upper half of dst becomes zero.
template <class Self> class Instructions {
  public:
    // --- Arithmetic; the first parameter is the left-hand side and takes the result

    /// dst = value (RFC 9669, 4.1). A number is -2^31 to 2^31-1, as in all that takes a Value64; load_imm64 takes any.
    constexpr void mov(WritableReg dst, Value64 value, Where where = Where::current()) { alu("=", 64, dst, value, where); }
    /// The same with 32 bits. A number is -2^31 to 2^32-1, as in all that takes a Value32.
    constexpr void mov(Reg32 dst, Value32 value, Where where = Where::current()) { alu("=", 32, dst, value, where); }
    /// dst = dst + value, which wraps around (RFC 9669, 4.1).
    constexpr void add(WritableReg dst, Value64 value, Where where = Where::current()) { alu("+=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void add(Reg32 dst, Value32 value, Where where = Where::current()) { alu("+=", 32, dst, value, where); }
    /// dst = dst - value, which wraps around (RFC 9669, 4.1).
    constexpr void sub(WritableReg dst, Value64 value, Where where = Where::current()) { alu("-=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void sub(Reg32 dst, Value32 value, Where where = Where::current()) { alu("-=", 32, dst, value, where); }
    /// dst = dst * value, which wraps around (RFC 9669, 4.1).
    constexpr void mul(WritableReg dst, Value64 value, Where where = Where::current()) { alu("*=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void mul(Reg32 dst, Value32 value, Where where = Where::current()) { alu("*=", 32, dst, value, where); }
    /// The unsigned quotient; 0 when a register in `value` holds 0 (RFC 9669, 4.1). A constant 0 is refused.
    constexpr void div(WritableReg dst, Divisor64 value, Where where = Where::current()) { alu("/=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void div(Reg32 dst, Divisor32 value, Where where = Where::current()) { alu("/=", 32, dst, value, where); }
    /// The unsigned remainder; dst as it was when a register in `value` holds 0 (RFC 9669, 4.1). A constant 0 is refused.
    constexpr void mod(WritableReg dst, Divisor64 value, Where where = Where::current()) { alu("%=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void mod(Reg32 dst, Divisor32 value, Where where = Where::current()) { alu("%=", 32, dst, value, where); }
    /// The signed quotient, rounded towards zero (6.6; RFC 9669, 4.1). By 0 as div.
    constexpr void sdiv(WritableReg dst, Divisor64 value, Where where = Where::current()) { alu("s/=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void sdiv(Reg32 dst, Divisor32 value, Where where = Where::current()) { alu("s/=", 32, dst, value, where); }
    /// The signed remainder, which has the sign of dst (6.6; RFC 9669, 4.1). By 0 as mod.
    constexpr void smod(WritableReg dst, Divisor64 value, Where where = Where::current()) { alu("s%=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void smod(Reg32 dst, Divisor32 value, Where where = Where::current()) { alu("s%=", 32, dst, value, where); }
    /// dst = dst | value, bit by bit (RFC 9669, 4.1). A number is sign-extended to 64 bits.
    constexpr void or_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("|=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void or_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("|=", 32, dst, value, where); }
    /// dst = dst & value, bit by bit (RFC 9669, 4.1). A number is sign-extended to 64 bits: -8 clears the low three of them.
    constexpr void and_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("&=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void and_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("&=", 32, dst, value, where); }
    /// dst = dst ^ value, bit by bit (RFC 9669, 4.1). A number is sign-extended to 64 bits.
    constexpr void xor_(WritableReg dst, Value64 value, Where where = Where::current()) { alu("^=", 64, dst, value, where); }
    /// The same with 32 bits.
    constexpr void xor_(Reg32 dst, Value32 value, Where where = Where::current()) { alu("^=", 32, dst, value, where); }
    /// Shifts dst to the left by 0 to 63; of a register the low six bits count (RFC 9669, 4.1).
    constexpr void lsh(WritableReg dst, Shift64 value, Where where = Where::current()) { alu("<<=", 64, dst, value, where); }
    /// The same with 32 bits: by 0 to 31, the low five bits.
    constexpr void lsh(Reg32 dst, Shift32 value, Where where = Where::current()) { alu("<<=", 32, dst, value, where); }
    /// Shifts dst to the right by 0 to 63, zeroes come in; of a register the low six bits count (RFC 9669, 4.1).
    constexpr void rsh(WritableReg dst, Shift64 value, Where where = Where::current()) { alu(">>=", 64, dst, value, where); }
    /// The same with 32 bits: by 0 to 31, the low five bits.
    constexpr void rsh(Reg32 dst, Shift32 value, Where where = Where::current()) { alu(">>=", 32, dst, value, where); }
    /// Shifts dst to the right by 0 to 63, copies of the sign bit come in; of a register the low six bits count (RFC 9669, 4.1).
    constexpr void arsh(WritableReg dst, Shift64 value, Where where = Where::current()) { alu("s>>=", 64, dst, value, where); }
    /// The same with 32 bits: by 0 to 31, the low five bits.
    constexpr void arsh(Reg32 dst, Shift32 value, Where where = Where::current()) { alu("s>>=", 32, dst, value, where); }
    /// dst = -dst (RFC 9669, 4.1).
    constexpr void neg(WritableReg dst, Where where = Where::current()) { one(Shape::negate, "-", 64, dst.number(), where); }
    /// The same with 32 bits.
    constexpr void neg(Reg32 dst, Where where = Where::current()) { one(Shape::negate, "-", 32, dst.number(), where); }
    /// dst = the lowest `bits` (8, 16 or 32) of src as a signed number (6.6; RFC 9669, 4.1).
    constexpr void sign_extend(WritableReg dst, Reg src, Width<8, 16, 32> bits, Where where = Where::current()) {
        constexpr std::string_view kRows[] = {"movsx8", "movsx16", "movsx32"};
        if (bits.is_right()) return named(kRows[bits.bits / 16], dst.number(), src.number(), where);
        self().complain(where, "sign_extend takes 8, 16 or 32 bits");
    }
    /// The same with 32 bits, of the lowest 8 or 16.
    constexpr void sign_extend(Reg32 dst, Reg32 src, Width<8, 16> bits, Where where = Where::current()) {
        if (bits.is_right()) return named(bits.bits == 8 ? "movsx8_32" : "movsx16_32", dst.number(), src.number(), where);
        self().complain(where, "sign_extend of a 32-bit register takes 8 or 16 bits");
    }
    /// Converts the lowest `bits` of dst between the machine's byte order and little-endian; the rest becomes zero (RFC
    /// 9669, 4.2).
    constexpr void to_le(WritableReg dst, Width<16, 32, 64> bits, Where where = Where::current()) {
        swap("le16", "le32", "le64", dst, bits, where);
    }
    /// Converts the lowest `bits` of dst between the machine's byte order and big-endian; the rest becomes zero (RFC 9669, 4.2).
    constexpr void to_be(WritableReg dst, Width<16, 32, 64> bits, Where where = Where::current()) {
        swap("be16", "be32", "be64", dst, bits, where);
    }
    /// Swaps the lowest `bits` (16, 32 or 64) on any machine; the rest becomes zero (6.6).
    constexpr void bswap(WritableReg dst, Width<16, 32, 64> bits, Where where = Where::current()) {
        swap("bswap16", "bswap32", "bswap64", dst, bits, where);
    }
    /// dst = any 64-bit number; two slots.
    constexpr void load_imm64(WritableReg dst, uint64_t number, Where where = Where::current()) {
        Operands operands;
        operands.dst = dst.number();
        operands.imm = static_cast<int64_t>(number);
        self().append(*find_form("lddw"), operands, where);
    }

    // --- Memory; T is uint8_t to uint64_t

    /// dst = *(T *)from, the upper bits become zero (RFC 9669, 5.1).
    template <class T> constexpr void load(WritableReg dst, MemOf<T> from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load<uint8_t .. uint64_t>; load_signed extends the sign (kernel 6.6)");
        read(Shape::load, unsigned_type(sizeof(T) * 8), sizeof(T) * 8, dst, from, where);
    }
    /// dst = *(T *)from with its sign extended to 64 bits (6.6); T is int8_t to int32_t.
    template <class T> constexpr void load_signed(WritableReg dst, MemOf<T> from, Where where = Where::current()) {
        static_assert(std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) < 8, "load_signed<int8_t .. int32_t>");
        constexpr std::string_view kTypes[] = {"s8", "s16", "s32"};
        read(Shape::load, kTypes[sizeof(T) / 2], sizeof(T) * 8, dst, from, where);
    }
    /// *(T *)to = value (RFC 9669, 5.1): a register's low bits, or a number that fits in T; for 64 bits -2^31 to 2^31-1.
    template <class T> constexpr void store(MemOf<T> to, Stored<T> value, Where where = Where::current()) {
        static_assert(std::is_integral_v<T>, "store<uint8_t .. uint64_t>");
        if (value.is_register) return write(Shape::store_reg, unsigned_type(sizeof(T) * 8), sizeof(T) * 8, to, value.reg, where);
        self().store_number(sizeof(T) * 8, to, value.number, where);
    }
    /// *(T *)to += value, as one step (RFC 9669, 5.3). T has 32 or 64 bits, as in all the atomics.
    template <class T> constexpr void atomic_add(MemOf<T> to, Reg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic, "+=", to, value, where);
    }
    /// *(T *)to |= value, as one step (5.12).
    template <class T> constexpr void atomic_or(MemOf<T> to, Reg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic, "|=", to, value, where);
    }
    /// *(T *)to &= value, as one step (5.12).
    template <class T> constexpr void atomic_and(MemOf<T> to, Reg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic, "&=", to, value, where);
    }
    /// *(T *)to ^= value, as one step (5.12).
    template <class T> constexpr void atomic_xor(MemOf<T> to, Reg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic, "^=", to, value, where);
    }
    /// As atomic_add, and `value` becomes what was there before (5.12).
    template <class T> constexpr void fetch_add(MemOf<T> to, WritableReg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic_fetch, "atomic_fetch_add", to, value, where);
    }
    /// As atomic_or, and `value` becomes what was there before (5.12).
    template <class T> constexpr void fetch_or(MemOf<T> to, WritableReg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic_fetch, "atomic_fetch_or", to, value, where);
    }
    /// As atomic_and, and `value` becomes what was there before (5.12).
    template <class T> constexpr void fetch_and(MemOf<T> to, WritableReg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic_fetch, "atomic_fetch_and", to, value, where);
    }
    /// As atomic_xor, and `value` becomes what was there before (5.12).
    template <class T> constexpr void fetch_xor(MemOf<T> to, WritableReg value, Where where = Where::current()) {
        atomic<T>(Shape::atomic_fetch, "atomic_fetch_xor", to, value, where);
    }
    /// *(T *)to = value, and `value` becomes what was there before, as one step (5.12).
    template <class T> constexpr void exchange(MemOf<T> to, WritableReg value, Where where = Where::current()) {
        atomic<T>(Shape::exchange, sizeof(T) == 4 ? "xchg32_32" : "xchg_64", to, value, where);
    }
    /// If *to is r0, it becomes `value`; r0 becomes what was there, as one step (5.12). T has 32 or 64 bits.
    template <class T> constexpr void compare_exchange(MemOf<T> to, Reg value, Where where = Where::current()) {
        atomic<T>(Shape::compare_swap, sizeof(T) == 4 ? "cmpxchg32_32" : "cmpxchg_64", to, value, where);
    }
    /// dst = *(T *)from; accesses behind it in the program come after it in memory (6.15).
    template <class T> constexpr void load_acquire(WritableReg dst, MemOf<T> from, Where where = Where::current()) {
        static_assert(std::is_unsigned_v<T>, "load_acquire<uint8_t .. uint64_t>");
        read(Shape::load_acquire, "load_acquire", sizeof(T) * 8, dst, from, where);
    }
    /// *(T *)to = value; accesses in front of it in the program come before it in memory (6.15).
    template <class T> constexpr void store_release(MemOf<T> to, Reg value, Where where = Where::current()) {
        static_assert(std::is_integral_v<T>, "store_release<uint8_t .. uint64_t>");
        write(Shape::store_release, "store_release", sizeof(T) * 8, to, value.number(), where);
    }
    /// r0 = the packet's bytes at offset `off`, in the machine's byte order; r6 must be the context. T is uint8_t to uint32_t.
    /// Beyond the packet's end the program ends with 0. r1 to r5 are gone. From classic BPF, for socket filters and tc (RFC
    /// 9669, 5.5).
    template <class T> constexpr void load_packet(int64_t off, Where where = Where::current()) {
        packet<T>(Shape::packet_abs, 0, off, where);
    }
    /// The same at offset `at` + `off`.
    template <class T> constexpr void load_packet(Reg at, int64_t off = 0, Where where = Where::current()) {
        packet<T>(Shape::packet_ind, at.number(), off, where);
    }

  private:
    constexpr Self &self() { return static_cast<Self &>(*this); }
    template <class R> constexpr void alu(std::string_view symbol, int bits, R dst, Source value, Where where) {
        self().operate(symbol, bits, dst.number(), value, where);
    }
    constexpr void one(Shape shape, std::string_view symbol, int bits, int dst, Where where) {
        Operands operands;
        operands.dst = dst;
        self().append(*find_form(shape, symbol, bits), operands, where);
    }
    constexpr void named(std::string_view row, int dst, int src, Where where) {
        Operands operands;
        operands.dst = dst;
        operands.src = src;
        self().append(*find_form(row), operands, where);
    }
    constexpr void swap(std::string_view of16, std::string_view of32, std::string_view of64, WritableReg dst,
                        Width<16, 32, 64> bits, Where where) {
        if (!bits.is_right()) return self().complain(where, "bytes are swapped in 16, 32 or 64 bits");
        one(Shape::byte_swap, bits.bits == 16 ? of16 : bits.bits == 32 ? of32 : of64, bits.bits, dst.number(), where);
    }
    constexpr void read(Shape shape, std::string_view symbol, int bits, WritableReg dst, const Mem &from, Where where) {
        self().load_form(shape, symbol, bits, dst.number(), from, where);
    }
    constexpr void write(Shape shape, std::string_view symbol, int bits, const Mem &to, int src, Where where) {
        self().memory(shape, symbol, bits, to, src, where);
    }
    template <class T> constexpr void atomic(Shape shape, std::string_view symbol, const Mem &to, Reg value, Where where) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics are 32 or 64 bits");
        write(shape, symbol, sizeof(T) * 8, to, value.number(), where);
    }
    template <class T> constexpr void packet(Shape shape, int src, int64_t off, Where where) {
        static_assert(std::is_unsigned_v<T> && sizeof(T) <= 4, "load_packet<uint8_t .. uint32_t>");
        Operands operands;
        operands.src = src;
        operands.imm = off;
        self().append(*find_form(shape, unsigned_type(sizeof(T) * 8), sizeof(T) * 8), operands, where);
    }
};

} // namespace rawbpf::inline v0
