// What a run did, for people: the ledger and the progress line on stderr.
#pragma once

#include <cstdint>
#include <string>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::render {

/// Several aligned lines, each ending in a newline. `tool` stands in front of the first ("rawbpf profile").
/// `noun`: what was counted, "sample" or "event".
[[nodiscard]] std::string ledger_text(std::string_view tool, const RunInfo &run, const Ledger &ledger, const RunCost &cost,
                                      std::string_view noun = "sample");

/// "12 s  1,187 samples  34 processes", without a newline.
[[nodiscard]] std::string progress_text(double seconds, uint64_t samples, uint64_t processes);

/// "1.6 us", "312 ns", "4.0 ms", "2.50 s".
[[nodiscard]] std::string duration_text(double seconds);
/// "3.1 MB", "640 KB", "12 bytes" (1 KB = 1024 bytes).
[[nodiscard]] std::string size_text(uint64_t bytes);

} // namespace rawbpf::inline v0::render
