// SPDX-License-Identifier: MIT
// Registers by the names that assemblers know them by, and where struct pt_regs has them. PURE.
#pragma once

#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0::usdt {

/// What a name stands for.
enum class RegisterKind : uint8_t {
    none,    ///< no register of this machine
    general, ///< its place in struct pt_regs is known
    zero,    ///< reads as zero: xzr, wzr, riscv's zero
    vector,  ///< floating point and vectors: not among the saved registers
    segment, ///< %fs, %gs ...: thread-local addresses go by them, and they aren't where a program could read them
};

/// A register, or a part of one.
struct Register {
    std::string_view name;                  ///< as written, without %
    RegisterKind kind = RegisterKind::none; ///< the fields below count only for `general`
    int16_t offset = 0; ///< of the whole register in the structure that a uprobe's program gets (struct pt_regs' user part)
    uint8_t bits = 64;  ///< how much of it the name means
    uint8_t shift = 0;  ///< where that begins: 8 for %ah
    uint8_t word = 8;   ///< bytes of the whole register
};

/// By name, without %. kind is none where the machine (EM_X86_64, EM_386, EM_AARCH64, EM_RISCV, EM_S390, EM_ARM) has no such
/// register.
[[nodiscard]] Register find_register(uint16_t machine, std::string_view name);
/// Where the program counter is saved, which a probe's program finds at the probe's own address; -1: machine not known.
[[nodiscard]] int16_t program_counter(uint16_t machine);
/// "x86_64", "arm64" ...; a phrase for one without a name here.
[[nodiscard]] std::string_view machine_name(uint16_t machine, bool is_64);

} // namespace rawbpf::inline v0::usdt
