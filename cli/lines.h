// --lines and --inline: what they mean in every command that has them.
#pragma once

#include <memory>

#include "cli/options.h"
#include "programs/processes/source_lines.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kLinesOption{
    .name = "lines",
    .help = "show the source file and line of each frame, in json and pprof, and in the table with --ps. rawbpf reads them from "
            "debug info (DWARF): in the program's file, in its debug file, or from the servers that DEBUGINFOD_URLS names (files "
            "of at most 256 MB; DEBUGINFOD_MAXSIZE=BYTES sets another limit)"};
inline constexpr Option kInlineOption{
    .name = "inline",
    .help =
        "show inlined functions as separate frames, by debug info (Java's always are); folded, svg and top mark them with _[i]"};

/// Where a command's table has these rows.
struct LinesIds {
    Id lines, inlined;
};
template <size_t N> consteval LinesIds lines_ids(const Option (&table)[N]) {
    return {find(table, "lines"), find(table, "inline")};
}

/// Where debug info comes from, if it is asked for, by an option or by DEBUGINFOD_URLS; else nullptr. Errors: unsupported where
/// an option asks and the module that reads it, rawbpf-lines.so, can't be loaded.
[[nodiscard]] Result<std::unique_ptr<processes::DebugInfo>> debug_info_for(const Arguments &a, const LinesIds &ids);

} // namespace rawbpf::inline v0::cli
