// Files that have no name in the tree.
#pragma once

#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// memfd_create(2), 3.17: an empty file in memory, "/memfd:NAME (deleted)" among a process's mappings. Never to be executed as a
/// program (MFD_NOEXEC_SEAL, where there is that: 6.3), which some systems ask for; mapping it executable is another thing.
Result<Fd> memory_file(const std::string &name);

} // namespace rawbpf::inline v0::sys
