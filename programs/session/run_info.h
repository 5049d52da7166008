// What the head of a capture, of JSON and of the ledger says of a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/render/frame.h"

namespace rawbpf::inline v0::session {

/// `start_ns`: CLOCK_MONOTONIC. The frequency is left open.
[[nodiscard]] RunInfo describe_run(std::vector<std::string> command, std::string version, size_t cpus, uint64_t start_ns);

} // namespace rawbpf::inline v0::session
