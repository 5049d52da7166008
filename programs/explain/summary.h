// What happened at each instruction, over all visits. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/explain/explanation.h"

namespace rawbpf::inline v0::explain {

/// One instruction.
struct InsnSummary {
    uint32_t visits = 0;
    uint32_t jumps = 0, straight = 0; ///< a branch: how often its paths went either way
    uint32_t pruned = 0;              ///< paths that ended here, as what they knew was known before
    uint32_t ends = 0;                ///< paths that ended here by exit
    struct ChangedPlace {
        Known known;                     ///< which place
        std::vector<std::string> values; ///< what was known of it, each once, the first few
    };
    std::vector<ChangedPlace> places; ///< what it changed

    /// "splits: 2 paths jump, 1 goes straight on; 1 path ended here: known before"; empty: nothing of note.
    [[nodiscard]] std::string remarks() const;
};

/// One for each slot of the program.
[[nodiscard]] std::vector<InsnSummary> summarize(const Explanation &explanation);

/// "r6", "stack -8", "r1 of frame 1".
[[nodiscard]] std::string place_name(const Known &known);
/// "count.bpf.c:12"; "instruction 5" where there are no lines.
[[nodiscard]] std::string place_text(const ProgramPlace &at);
/// The names that instructions give numbers: helpers, maps. In the assembler's way.
[[nodiscard]] std::string insn_text(const Explanation &explanation, uint32_t insn);

} // namespace rawbpf::inline v0::explain
