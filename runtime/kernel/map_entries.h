// All entries of a map, some at a time: a map of a million entries is read in the memory of a few thousand.
#pragma once

#include <functional>

#include "runtime/base/result.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0 {

/// Shows all entries, in portions of about 256 KB, until `see` returns false or an error: by BPF_MAP_LOOKUP_BATCH (5.6), or key
/// after key where the map has no batch command. `and_delete` takes them out. What others add or delete meanwhile may be missed.
/// Errors: what `see` returned; invalid_argument for a queue or stack without `and_delete`; the kernel's.
[[nodiscard]] Result<void> each_entry(const Map &map, bool and_delete,
                                      const std::function<Result<bool>(const Map::Entries &)> &see);

} // namespace rawbpf::inline v0
