// How long the runs of a program took: as a whole, and without what entering and leaving any program costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/exec/run.h"
#include "programs/render/json_line.h"

namespace rawbpf::inline v0::exec {

/// Of the parts that the runs were measured in: nanoseconds.
struct Spread {
    double least = 0, median = 0, most = 0;
};

struct Timing {
    size_t parts = 0;
    double mean = 0;
    Spread run;                  ///< one run
    std::optional<Spread> empty; ///< one of a program that only returns
    std::optional<Spread> own;   ///< a run without the median of that, not below 0
    std::optional<Spread> each;  ///< of that, each instruction but the two that the empty program has
    uint64_t instructions = 0;   ///< 0: not known
};

/// PURE.
[[nodiscard]] Timing timing_of(const RunResult &result);
/// "12.3 ns a run, 30 instructions (median of 20 parts, 12.0 to 15.1, mean 12.4; an empty program 8.0, so 4.3 of its own, 4.0 to
/// 7.1: 0.15 ns each instruction more, 0.14 to 0.25)".
[[nodiscard]] std::string timing_text(const Timing &timing);
/// ns, empty_ns, own_ns, ns_per_instruction, instructions: null where they aren't known.
void append_timing_json(render::JsonObject &out, const Timing &timing);

} // namespace rawbpf::inline v0::exec
