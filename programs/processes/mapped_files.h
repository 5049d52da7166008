// Files that processes have mapped, opened by the processes themselves: in their containers, and under the name that they had.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "programs/processes/process_table.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/elf/elf.h"
#include "runtime/symbols/mapped_file.h"

namespace rawbpf::inline v0::processes {

/// A module's file (runtime/symbols/mapped_file.h). [start, end) is where the first of `pids` (then those it was forked from) has
/// it mapped; 0 is nobody. Errors: not_found when none of them can say any more, and its path is another file's.
[[nodiscard]] Result<symbols::MappedFile> open_mapped(const Module &module, const std::vector<uint32_t> &pids, uint64_t start,
                                                      uint64_t end);

/// Hands the file of a mapping of `pid`'s to `read`, as long as it is mapped here; a file that can't be read or isn't ELF isn't
/// handed on. False: it can't be opened, and the next process may lead to it.
[[nodiscard]] bool read_mapped(const ProcessTable &table, uint32_t pid, const ProcessTable::Mapping &mapping,
                               const std::function<void(const elf::Elf &, Bytes)> &read);

} // namespace rawbpf::inline v0::processes
