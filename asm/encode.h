// SPDX-License-Identifier: MIT
// Makes an instruction of operands. It never truncates silently.
//
// The ranges are those of the fields: a register 0..10, an offset 16 bits, an immediate 32 bits. The machine sign-extends an
// immediate of a 64-bit operation, so `r1 &= 0xffffffff` can't be encoded (it would keep all 64 bits); an immediate of a
// 32-bit operation may be written signed or unsigned, its bits are the same. The encoder also refuses what the verifier
// refuses in every program: writing r10, dividing by a constant zero, shifting by the width or more.
#pragma once

#include <cstdint>
#include <string>

#include "asm/opcodes.h"

namespace rawbpf::inline v0 {

/// What goes into an instruction. Fields that the form doesn't have (Form::fields) must be 0.
struct Operands {
    int dst = 0;     ///< register 0 to 10
    int src = 0;     ///< register 0 to 10
    int64_t off = 0; ///< -32768 to 32767: bytes; of jumps: instructions, from the next one
    int64_t imm = 0; ///< 32 bits, of ld_imm64 all 64; of gotol and local calls: instructions, from the next one
};

/// Why encode() refuses.
enum class Problem : uint8_t {
    none,             ///< it doesn't
    no_such_register, ///< not 0..10
    read_only,        ///< r10 as the result
    offset_range,     ///< beyond 16 bits
    immediate_range,  ///< doesn't survive the trip through 32 bits
    value_range,      ///< doesn't fit in the memory that it is stored to
    shift_range,      ///< at or beyond the width
    zero_divisor,     ///< division or remainder by a constant 0
    address_space,    ///< of addr_space_cast: not two numbers of 16 bits, to << 16 | from
    not_an_operand    ///< a value for a field that this form doesn't have
};

/// What encode() returns; true when nothing is wrong.
struct Encoded {
    Insn insn;                       ///< valid when problem is none
    Insn second;                     ///< the second slot of ld_imm64; of other instructions all zero
    Problem problem = Problem::none; ///< the first thing that is wrong
    /// True when nothing is wrong.
    [[nodiscard]] constexpr explicit operator bool() const { return problem == Problem::none; }
};

/// True when the form changes its destination register.
[[nodiscard]] constexpr bool writes_dst(Shape shape) {
    switch (shape) {
    case Shape::alu_imm:
    case Shape::alu_reg:
    case Shape::negate:
    case Shape::sign_extend:
    case Shape::byte_swap:
    case Shape::cast:
    case Shape::load:
    case Shape::load_wide:
    case Shape::load_acquire: return true;
    default: return false;
    }
}
/// True when the form changes its source register (fetching atomics).
[[nodiscard]] constexpr bool writes_src(Shape shape) { return shape == Shape::atomic_fetch || shape == Shape::exchange; }
/// True when the form uses the value that its destination register has before.
[[nodiscard]] constexpr bool reads_dst(const Form &form) {
    if (!(form.fields() & kDst)) return false;
    switch (form.shape) {
    case Shape::sign_extend:
    case Shape::cast:
    case Shape::load:
    case Shape::load_wide:
    case Shape::load_acquire: return false;
    case Shape::alu_imm:
    case Shape::alu_reg: return form.symbol != "=";
    default: return true;
    }
}

namespace detail {
/// Whether low <= value <= high.
constexpr bool fits(int64_t value, int64_t low, int64_t high) { return low <= value && value <= high; }

/// What is wrong with this immediate of a form that has one.
constexpr Problem check_immediate(const Form &form, int64_t imm) {
    switch (form.shape) {
    case Shape::load_wide: return Problem::none;
    case Shape::store_imm:
        if (form.bits == 8) return fits(imm, -0x80, 0xff) ? Problem::none : Problem::value_range;
        if (form.bits == 16) return fits(imm, -0x8000, 0xffff) ? Problem::none : Problem::value_range;
        if (form.bits == 32) return fits(imm, INT32_MIN, UINT32_MAX) ? Problem::none : Problem::value_range;
        break;
    case Shape::alu_imm:
        switch (form.code & 0xf0) { // lsh, rsh, arsh; div, mod and their signed kin
        case 0x60:
        case 0x70:
        case 0xc0: return fits(imm, 0, form.bits - 1) ? Problem::none : Problem::shift_range;
        case 0x30:
        case 0x90:
            if (imm == 0) return Problem::zero_divisor;
            break;
        default: break;
        }
        break;
    case Shape::packet_abs: // unsigned since classic BPF, where the top negative values meant other headers
    case Shape::call_helper:
    case Shape::call_kfunc: return fits(imm, INT32_MIN, UINT32_MAX) ? Problem::none : Problem::immediate_range;
    case Shape::cast: return fits(imm, INT32_MIN, UINT32_MAX) ? Problem::none : Problem::address_space;
    default: break;
    }
    return fits(imm, INT32_MIN, form.register_bits == 32 ? int64_t{UINT32_MAX} : int64_t{INT32_MAX}) ? Problem::none
                                                                                                     : Problem::immediate_range;
}
} // namespace detail

/// Puts an instruction together. Usable in constant expressions; Encoded::problem says what doesn't fit.
[[nodiscard]] constexpr Encoded encode(const Form &form, const Operands &operands) {
    Encoded out;
    auto bad = [&](Problem problem) {
        out.problem = problem;
        return out;
    };
    const uint8_t fields = form.fields();
    if ((!(fields & kDst) && operands.dst != 0) || (!(fields & kSrc) && operands.src != 0) ||
        (!(fields & kOff) && operands.off != 0) || (!(fields & kImm) && operands.imm != 0))
        return bad(Problem::not_an_operand);
    if (!detail::fits(operands.dst, 0, 10) || !detail::fits(operands.src, 0, 10)) return bad(Problem::no_such_register);
    if ((writes_dst(form.shape) && operands.dst == 10) || (writes_src(form.shape) && operands.src == 10))
        return bad(Problem::read_only);
    if (!detail::fits(operands.off, INT16_MIN, INT16_MAX)) return bad(Problem::offset_range);
    if (fields & kImm)
        if (Problem problem = detail::check_immediate(form, operands.imm); problem != Problem::none) return bad(problem);

    out.insn.code = form.code;
    out.insn.dst = static_cast<uint8_t>(operands.dst & 15);
    out.insn.src = static_cast<uint8_t>((fields & kSrc ? operands.src : form.src) & 15);
    out.insn.off = fields & kOff ? static_cast<int16_t>(operands.off) : form.off;
    out.insn.imm = fields & kImm ? static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(operands.imm))) : form.imm;
    if (form.shape == Shape::load_wide)
        out.second.imm = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(operands.imm) >> 32));
    return out;
}

/// The same by the form's name: encode("add32", {.dst = 1, .imm = 5}). An unknown name is Problem::not_an_operand.
[[nodiscard]] constexpr Encoded encode(std::string_view name, const Operands &operands) {
    for (const Form &form : isa::kForms)
        if (form.name == name) return encode(form, operands);
    Encoded out;
    out.problem = Problem::not_an_operand;
    return out;
}

/// What is wrong and what would be right, as one sentence without a full stop: "5000000000 doesn't fit in the immediate of ...".
[[nodiscard]] std::string describe(Problem problem, const Form &form, const Operands &operands);

} // namespace rawbpf::inline v0
