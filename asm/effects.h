// Which registers an instruction reads and writes, by its form: for what follows values without running them.
#pragma once

#include <cstdint>

#include "asm/insn.h"
#include "asm/opcodes.h"

namespace rawbpf::inline v0 {

/// Bit n: rn.
using RegisterSet = uint16_t;
constexpr RegisterSet register_bit(unsigned n) { return static_cast<RegisterSet>(1u << n); }
inline constexpr RegisterSet kArgumentRegisters = 0b111110; ///< r1 to r5

struct RegisterEffect {
    RegisterSet reads = 0, writes = 0;
    bool call = false; ///< afterwards nothing is known of r1 to r5
};

/// Which registers a call reads depends on the function that is called: of them `reads` has only the one with the address. exit
/// reads r0, which isn't in `reads` either: not every function returns something.
constexpr RegisterEffect effect_of(const Form &form, const Insn &insn) {
    const auto set = [](unsigned bits) { return static_cast<RegisterSet>(bits); };
    const RegisterSet dst = register_bit(insn.dst), src = register_bit(insn.src), r0 = register_bit(0), r6 = register_bit(6);
    const bool moves = (insn.code & 0xf0) == 0xb0;
    switch (form.shape) {
    case Shape::alu_imm: return {moves ? set(0) : dst, dst};
    case Shape::alu_reg: return {moves ? src : set(dst | src), dst};
    case Shape::negate:
    case Shape::byte_swap: return {dst, dst};
    case Shape::sign_extend:
    case Shape::cast:
    case Shape::load:
    case Shape::load_acquire: return {src, dst};
    case Shape::load_wide: return {0, dst};
    case Shape::store_imm: return {dst, 0};
    case Shape::store_reg:
    case Shape::store_release:
    case Shape::atomic: return {set(dst | src), 0};
    case Shape::atomic_fetch:
    case Shape::exchange: return {set(dst | src), src};
    case Shape::compare_swap: return {set(dst | src | r0), r0};
    case Shape::packet_abs: return {r6, r0, true};
    case Shape::packet_ind: return {set(r6 | src), r0, true};
    case Shape::branch_imm:
    case Shape::jump_reg: return {dst, 0};
    case Shape::branch_reg: return {set(dst | src), 0};
    case Shape::call_helper:
    case Shape::call_local:
    case Shape::call_kfunc: return {0, r0, true};
    case Shape::call_reg: return {dst, r0, true};
    default: return {};
    }
}

/// Whether it writes to memory at its dst register.
constexpr bool stores(Shape shape) {
    switch (shape) {
    case Shape::store_imm:
    case Shape::store_reg:
    case Shape::atomic:
    case Shape::atomic_fetch:
    case Shape::exchange:
    case Shape::compare_swap:
    case Shape::store_release: return true;
    default: return false;
    }
}

} // namespace rawbpf::inline v0
