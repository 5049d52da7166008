// What would help, for a system call that failed: one table keyed by (call, errno).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/sys/facts.h"

namespace rawbpf::inline v0::sys {

/// Stands for every bpf(2) command in the table.
inline constexpr uint32_t kAnyCommand = ~0u;

/// The hint for a bpf(2) command (BPF_MAP_CREATE ...) that failed with `os`, or an empty text.
[[nodiscard]] std::string bpf_hint(uint32_t command, int os);
/// The same for perf_event_open(2).
[[nodiscard]] std::string perf_hint(int os);
/// The same with given facts. PURE.
[[nodiscard]] std::string bpf_hint(uint32_t command, int os, const Facts &known);
[[nodiscard]] std::string perf_hint(int os, const Facts &known);

} // namespace rawbpf::inline v0::sys
