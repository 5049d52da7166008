// Where this executable lies: its modules (rawbpf-lines.so, rawbpf-otlp.so) are looked for there first.
#pragma once

#include <string>
#include <vector>

namespace rawbpf::inline v0::cli {

/// Without a slash at its end; empty where it can't be found out.
[[nodiscard]] std::string own_folder();
/// Where the lessons may be: installed, or in the source tree that this was built in.
[[nodiscard]] std::vector<std::string> lesson_folders();

} // namespace rawbpf::inline v0::cli
