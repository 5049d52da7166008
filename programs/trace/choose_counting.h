// Whether a trace's stacks are told apart in the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/trace/program.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::trace {

/// Sets `program.counting`, with room for so many stacks, where this kernel and these options can have it; else a note says why
/// not. Errors: unsupported, where groups need it (--by stack).
[[nodiscard]] Result<void> choose_counting(ProgramOptions &program, uint32_t stacks, bool by_thread,
                                           std::vector<std::string> &notes);

} // namespace rawbpf::inline v0::trace
