// The steps of a run as JSON lines: what `step --trace --json` prints for scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "programs/exec/stepper.h"

namespace rawbpf::inline v0::exec {

/// An instruction that is about to run.
struct NextStep {
    size_t insn = 0;
    uint32_t depth = 0; ///< of calls
    std::string text;   ///< instruction_text()
    emulator::Source source;
};
[[nodiscard]] NextStep next_step(const Stepper &stepper);

/// The step that was just made: "step" (its number, from 1), "insn", "depth", "text", "file", "line" and "source" (null where
/// they aren't known), "changes", and "printed" (null: nothing). A change of a register has its name, its values "before" and
/// "after", what the value points to (null: nothing that has a name), and with `known` what the verifier knows (null: nothing); a
/// change of memory has its address, the place's name and its bytes, in hexadecimal.
void append_step_json(std::string &out, const Stepper &stepper, const NextStep &step, bool known);
/// The last line: "r0", "steps", whether the program "ended", what it could not do ("fault"), and the verifier's "verdict".
void append_end_json(std::string &out, const Stepper &stepper, uint64_t steps, bool known);

} // namespace rawbpf::inline v0::exec
