// A program on a perf event: tracepoints, kprobes, uprobes and clocks all use this. Private to this folder.
#pragma once

#include <cstdint>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// BPF_LINK_CREATE where the kernel has it for events (5.15); before, an invalid Fd and PERF_EVENT_IOC_SET_BPF. The answer is
/// kept for every further event. Errors: unsupported when there is a cookie and no link to carry it.
[[nodiscard]] Result<Fd> run_on_event(int event_fd, int program_fd, uint64_t cookie = 0);

} // namespace rawbpf::inline v0
