// Follows what threads start, in the kernel: who forks puts the new thread's number into a map, who ends takes its own out.
//
//      sched_process_fork   TOOL_fork   the thread that forks is followed?  --> its child's number into the map
//      sched_process_exit   TOOL_exit   this thread's number out of the map: numbers are used again
//
// User space reads the news of forks too late for a child that lives for a millisecond. The numbers are the kernel's own (the
// machine's, not a pid namespace's), since the tracepoint has those. The tracepoint's record says where the child's number stands
// (link/tracefs.h, forked_child_offset()), so this needs no BTF of the kernel. (Waits are told by processes:
// profile/off_cpu_dsl.cpp.)
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "asm/builder.h"

namespace rawbpf::inline v0 {

/// Code that goes to `out` where the current thread isn't followed, and may use `thread` (u32) as its key. r6 has to stay.
using IsFollowed = std::function<void(Code &f, const Slot &thread, const Label &out)>;

/// `thread` = the current thread's number; goes to `out` where it isn't in `followed`.
void is_in_followed(Code &f, const MapRef &followed, const Slot &thread, const Label &out);

/// The programs TOOL_fork and TOOL_exit. `followed`: a hash of u32 (the thread) to u8. `child_at`: bytes from the start of
/// sched_process_fork's record.
void follow_threads(Builder &b, std::string_view tool, const MapRef &followed, uint16_t child_at, const IsFollowed &is_followed);

} // namespace rawbpf::inline v0
