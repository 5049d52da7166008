// Files that processes have mapped, opened by the processes themselves: in their containers, and under the name that they had.
#pragma once

#include <cstdint>
#include <vector>

#include "programs/processes/process_table.h"
#include "runtime/base/result.h"
#include "runtime/symbols/mapped_file.h"

namespace rawbpf::inline v0::processes {

/// A module's file (runtime/symbols/mapped_file.h). [start, end) is where the first of `pids` (then those it was forked from) has
/// it mapped; 0 is nobody. Errors: not_found when none of them can say any more, and its path is another file's.
[[nodiscard]] Result<symbols::MappedFile> open_mapped(const Module &module, const std::vector<uint32_t> &pids, uint64_t start,
                                                      uint64_t end);

} // namespace rawbpf::inline v0::processes
