// One system call as a line of text, for the narrator (--syscalls) and readable with the manual page open beside it:
//
//      bpf(BPF_MAP_CREATE, {map_type=BPF_MAP_TYPE_RINGBUF, key_size=0, value_size=0, max_entries=262144, map_name="events"}, 44)
//      = 5   # map events: the ring that records come out of
#pragma once

#include <string>

#include "runtime/sys/choke.h"

namespace rawbpf::inline v0::sys {

/// True for the calls that the narrator shows: bpf(2), perf_event_open(2), ioctl(2) and mmap(2).
[[nodiscard]] bool is_narrated(const Call &call);

/// The call with its attributes decoded by name, its result or errno, and why it was made. Follows the attribute pointers of
/// the call, so it belongs into Observer::after(), while they are alive; reads nothing else. Empty for other calls.
[[nodiscard]] std::string describe(const Call &call, long result);

} // namespace rawbpf::inline v0::sys
