// SPDX-License-Identifier: MIT
// CPUs, as the kernel counts them.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// CPUs from a kernel list such as "0-3,8", ascending and without repetition; errors point at the offending part. PURE.
[[nodiscard]] Result<std::vector<int>> parse_cpu_list(std::string_view text);
/// CPUs that are running now (/sys/devices/system/cpu/online); without /sys those that this thread may run on.
[[nodiscard]] Result<std::vector<int>> online_cpus();
/// CPUs that could ever be there; a lookup in a per-CPU map fills a slot for each. Read once. Without /sys a number that is not
/// too small.
[[nodiscard]] Result<int> possible_cpu_count();

} // namespace rawbpf::inline v0
