// Lines and inlined functions of one module, by elfutils' libdw.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "programs/processes/source_lines.h"

namespace rawbpf::inline v0::dwarf {

/// Of a file with debug info. `path`: where it is in `root`, for what it refers to (a dwz file, .dwo files; those are looked for
/// in our own file system). `complain` is given a sentence where a part of it is missing. Errors: bad_input.
[[nodiscard]] Result<std::unique_ptr<processes::ModuleLines>>
open_lines(Fd file, const std::string &path, const std::string &root, const std::function<void(std::string)> &complain);

} // namespace rawbpf::inline v0::dwarf
