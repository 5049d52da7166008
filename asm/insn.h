// SPDX-License-Identifier: MIT
// One BPF instruction, as RFC 9669 lays it out:
//
//      byte  0        1          2..3     4..7
//          [ opcode | src:dst  | offset | imm            ]      registers: destination in the low four bits
//
// A wide instruction (ld_imm64) is two of these; the second one's imm holds the upper half, everything else in it is zero.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0 {

/// Eight bytes, exactly as bpf(2) takes them on a little-endian machine.
struct Insn {
    uint8_t code = 0;    ///< opcode (RFC 9669, 3.1)
    uint8_t dst : 4 = 0; ///< destination register
    uint8_t src : 4 = 0; ///< source register, or what tells kinds of calls and of ld_imm64 apart
    int16_t off = 0;     ///< bytes from a register; of jumps: instructions, from the next one
    int32_t imm = 0;     ///< a number, sign-extended by 64-bit operations; or which atomic, helper ... it is

    /// Equal in all fields.
    friend constexpr bool operator==(const Insn &, const Insn &) = default;
};
static_assert(sizeof(Insn) == 8);

/// True for the first half of ld_imm64 (opcode 0x18).
[[nodiscard]] constexpr bool is_wide(const Insn &insn) { return insn.code == 0x18; }

/// A complaint about source text or about a program under construction.
struct Diagnostic {
    int line = 0;        ///< 1-based; 0 = unknown
    int column = 0;      ///< 1-based; 0 = unknown
    std::string message; ///< one sentence without a full stop
    std::string file;    ///< empty = unknown
};

/// "hello.cpp:12:5: message", with what is known of the place; no newline.
[[nodiscard]] std::string to_string(const Diagnostic &diagnostic);

} // namespace rawbpf::inline v0
