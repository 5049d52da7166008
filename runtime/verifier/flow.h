// What the verifier finds out before it follows any value: functions, jump targets, registers that are still needed. PURE.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asm/insn.h"
#include "asm/opcodes.h"

namespace rawbpf::inline v0::verifier {

/// A function: instructions `begin` to `end`, which isn't one of them.
struct FunctionRange {
    uint32_t begin, end;
    bool tail_calls = false;
    bool later = false;      ///< called by itself: a timer, a work queue; filled in during the walk
    bool callback = false;   ///< a helper calls it; filled in during the walk
    bool exceptions = false; ///< what is called when an exception was thrown
    uint32_t depth = 0;      ///< bytes of its stack, filled in during the walk
};

/// A program's shape.
struct Flow {
    std::vector<FunctionRange> functions; ///< ascending; the first is the program's entry
    std::vector<uint16_t> needed;         ///< bit n: what register n holds before this instruction may still be read
    std::vector<bool> meets;              ///< whether paths may meet here, so that states are compared
    std::string refusal;                  ///< in the kernel's words; empty: the shape is right
    uint32_t refused_at = 0;
    bool placed = false; ///< whether refused_at means something

    /// Which function an instruction is in: its number.
    [[nodiscard]] uint32_t function_of(uint32_t insn) const;
    /// Whether a function begins there.
    [[nodiscard]] bool begins(uint32_t insn) const;
};

/// Where an instruction goes to: the next one, and another.
struct Ways {
    bool falls = true;  ///< goes on to the next one
    bool jumps = false; ///< may go to `target`
    int64_t target = 0; ///< of a jump, or of a call inside the program
    bool calls = false; ///< `target` is a function
};
[[nodiscard]] Ways ways_of(std::span<const Insn> insns, uint32_t at);

/// `entries`: where functions begin that no call of the program names.
[[nodiscard]] Flow flow_of(std::span<const Insn> insns, std::span<const uint32_t> entries, KernelVersion kernel);
/// The instruction without the one field that no kernel looks at: the offset of `exit`.
[[nodiscard]] Insn as_looked_at(Insn insn);
/// What the kernel says of an instruction whose opcode it knows and whose other fields mean nothing to it: "BPF_MOV uses reserved
/// fields".
[[nodiscard]] std::string_view reserved_fields(const Insn &insn);

} // namespace rawbpf::inline v0::verifier
