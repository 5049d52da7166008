// Where file systems are mounted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0::sys {

/// The directories at which file systems of that type ("bpf", "cgroup2") are mounted for this process, in the order in which they
/// were mounted, each once; none where /proc/self/mounts can't be read.
[[nodiscard]] std::vector<std::string> mount_points(std::string_view type);
/// The same from the text of that file. PURE.
[[nodiscard]] std::vector<std::string> mount_points(std::string_view type, std::string_view mounts);

} // namespace rawbpf::inline v0::sys
