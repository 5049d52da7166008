// Where this executable lies: its modules (rawbpf-lines.so, rawbpf-otlp.so) are looked for there first.
#pragma once

#include <string>

namespace rawbpf::inline v0::cli {

/// Without a slash at its end; empty where it can't be found out.
[[nodiscard]] std::string own_folder();

} // namespace rawbpf::inline v0::cli
