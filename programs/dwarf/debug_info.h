// Where debug info comes from, and the module that it is in: rawbpf-lines.so, which is loaded when somebody asks for lines or
// inlined functions, or has servers for debug files (DEBUGINFOD_URLS). libdw brings four more libraries along.
#pragma once

#include <memory>
#include <string>

#include "programs/processes/source_lines.h"

namespace rawbpf::inline v0::dwarf {

/// Debug info of files, of separate debug files, and of debuginfod's servers where DEBUGINFOD_URLS names some.
[[nodiscard]] std::unique_ptr<processes::DebugInfo> make_debug_info();

/// What the module has.
struct Lines {
    const char *version = nullptr; ///< of the build that it belongs to
    std::unique_ptr<processes::DebugInfo> (*make_debug_info)() = nullptr;
};
/// Loads the module, once and for good: from `folder`, that of the executable, or where it was installed. Errors: unsupported
/// when this build has none, or it isn't there, or it is another version's.
[[nodiscard]] Result<const Lines *> load_lines(const std::string &folder, std::string_view version);

} // namespace rawbpf::inline v0::dwarf
