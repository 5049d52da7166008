// What a tail call takes on this machine.
#pragma once

#include "runtime/base/result.h"

namespace rawbpf::inline v0::custom {

/// Nanoseconds: a program that jumps into an empty one, less the empty one by itself, of each the best of twenty rounds of 50,000
/// runs (BPF_PROG_TEST_RUN). Not to be asked for while run-time statistics are on (RunStats). Errors: permission, unsupported.
[[nodiscard]] Result<double> tail_call_ns();

} // namespace rawbpf::inline v0::custom
