// SPDX-License-Identifier: MIT
// The file that a process has mapped: the very one, or none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/symbols/maps.h"

namespace rawbpf::inline v0::symbols {

/// What open_mapped() opened.
struct MappedFile {
    Fd file;          ///< for reading
    std::string path; ///< leads to it from here, while the process lives
    std::string root; ///< of the file system it came from, for its separate debug file; empty: ours
};

/// Opens the file behind `region` for reading. `pids`: the process that has it mapped there, then others with the same root
/// (those it was forked from); 0 is nobody. `root`: where its path may lead to it as well; empty: our own root.
/// Errors: not_found when no way leads to this very file any more: the processes have ended, and the path is another file's;
/// permission and others, when a way could not be tried.
[[nodiscard]] Result<MappedFile> open_mapped(const Region &region, std::span<const uint32_t> pids, const std::string &root = {});

} // namespace rawbpf::inline v0::symbols
