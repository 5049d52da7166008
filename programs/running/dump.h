// What a loaded map holds, whoever made it, entry by entry.
#pragma once

#include <cstdint>

#include "programs/render/writer.h"
#include "programs/running/names.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::running {

struct DumpOptions {
    bool json = false;
    bool all = false; ///< text: also the elements of arrays that are zero
};

/// Writes every entry as it is read, by the types that the map was loaded with. Text: a heading, "  KEY = VALUE" lines, how many
/// there were. JSON: {"type":"entry","key","value" or "values","formatted"} with bpftool's fields, and {"type":"map_contents"} at
/// the end. Memory doesn't grow with the map. Errors: invalid_argument for maps whose contents can't be listed; the kernel's;
/// what writing gives.
[[nodiscard]] Result<void> dump_map(const Map &map, Names &names, const DumpOptions &options, render::Writer &out);
/// The same line for one entry, whose key and value were read.
[[nodiscard]] Result<void> dump_entry(const Map &map, Names &names, const DumpOptions &options, Bytes key, Bytes value,
                                      render::Writer &out);

} // namespace rawbpf::inline v0::running
