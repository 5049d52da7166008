// Single instructions of x86-64, as far as a compiler's integer code has them: enough to follow which words a small function
// loads, compares and stores. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::labels {

/// One instruction.
struct X86Instruction {
    static constexpr int kNone = -1;
    static constexpr int kStackPointer = 4, kGoroutine = 14; ///< registers by their numbers: rsp, r14
    size_t length = 0;                                       ///< bytes
    uint16_t opcode = 0;             ///< 0x8b; of two bytes 0x0faf; of three 0x38 or 0x3a in front: 0x38f0
    bool by_fs = false;              ///< memory counts from the thread's pointer
    bool wide = false;               ///< 64 bits
    bool memory = false;             ///< the operand `rm` is in memory
    bool by_rip = false;             ///< memory counts from the next instruction
    int reg = kNone;                 ///< the register operand, or the opcode's extension
    int rm = kNone;                  ///< the other operand, where it is a register
    int base = kNone, index = kNone; ///< registers that its address counts from
    int64_t displacement = 0, immediate = 0;
};

/// The instruction that `code` begins with; nullopt: cut, or none that is known here (vectors by VEX, privileged ones).
[[nodiscard]] std::optional<X86Instruction> decode_x86(Bytes code);

} // namespace rawbpf::inline v0::labels
