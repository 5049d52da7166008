// Files of tracefs, mounted or not.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// The directory that tracefs is reached by: /sys/kernel/tracing, /sys/kernel/debug/tracing, or, where it is mounted nowhere, a
/// mount of our own that only this process sees (/proc/self/fd/N, 5.2). Found once. Errors: unsupported without tracefs,
/// permission.
[[nodiscard]] Result<std::string> tracefs();

/// The number of "sched/sched_switch", for perf_event_open(2). Errors: not_found with the nearest names.
[[nodiscard]] Result<uint64_t> tracepoint_id(const std::string &name);

/// How many bytes the record of "sched/sched_switch" has, up to the end of its last field; 0: its format can't be read.
[[nodiscard]] uint64_t tracepoint_record_size(const std::string &name);

/// Where a child's thread id stands in the record of sched:sched_process_fork, in bytes. Errors: those of tracefs(), unsupported.
[[nodiscard]] Result<uint16_t> forked_child_offset();

} // namespace rawbpf::inline v0
