// What verifying a program took: the sums at the end of the verifier's log (BPF_LOG_STATS, 5.2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "programs/render/json_line.h"

namespace rawbpf::inline v0::load_tool {

struct VerifierFigures {
    uint64_t instructions = 0;            ///< that the verifier went through, on all paths together
    uint64_t states = 0, peak_states = 0; ///< that it remembered in all, and at once
    uint64_t most_states = 0;             ///< at one instruction
    std::optional<uint64_t> time_us;      ///< 5.2
    std::string stack;                    ///< bytes, of each function: "16", "16+8"; empty: not said
};

/// nullopt: the log has no such sums. PURE.
[[nodiscard]] std::optional<VerifierFigures> verifier_figures(std::string_view log);
/// "verified_insns","total_states","peak_states","max_states_per_insn","verification_time_us","stack_depth"; nulls for nullopt.
void append_verifier_json(render::JsonObject &out, const std::optional<VerifierFigures> &figures);
/// "6 instructions verified in 53 us, 2 states (2 at once, 1 at most at one instruction), stack 8 bytes".
[[nodiscard]] std::string verifier_text(const VerifierFigures &figures);

} // namespace rawbpf::inline v0::load_tool
