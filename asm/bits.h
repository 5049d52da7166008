// SPDX-License-Identifier: MIT
// An instruction taken apart, bit by bit: what `rawbpf encode` and `rawbpf decode` show.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asm/insn.h"

namespace rawbpf::inline v0 {

/// A run of bits with one meaning, within one field of an instruction.
struct BitField {
    std::string_view name; ///< "class", "operation", "dst", "imm"
    uint8_t byte = 0;      ///< where it begins: 0 to 7
    uint8_t bytes = 1;     ///< how many it spans: 1, 2 or 4
    uint8_t low = 0;       ///< its lowest bit, of a part of a byte; 0 otherwise
    uint8_t bits = 8;      ///< how many
    uint32_t value = 0;    ///< as unsigned
    std::string meaning;   ///< in words: "r1", "0: not used", "5, the number"
};

/// The fields of one slot, from the lowest bit of byte 0 upwards. `second`: it is the second slot of ld_imm64. What no form of
/// the table has is shown by its bits, with what is wrong in words.
[[nodiscard]] std::vector<BitField> bit_fields(const Insn &insn, bool second = false);

/// Why the bytes are no instruction; nothing when they are one. "no instruction has the code 0xff", "off must be 0 here, and is
/// 3".
[[nodiscard]] std::optional<std::string> undefined_reason(const Insn &insn);

/// The bytes of instructions as hexadecimal digits, "b7 00 00 00 2a 00 00 00".
[[nodiscard]] std::string hex_of(std::span<const Insn> insns);

/// The picture of an instruction of one or two slots: its text, what it does, and each field in a line with its bytes and bits.
[[nodiscard]] std::string bit_picture(std::span<const Insn> slots);

} // namespace rawbpf::inline v0
