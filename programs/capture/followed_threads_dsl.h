// Follows what threads start, in the kernel: who forks puts the new thread's number into a map, who ends takes its own out.
//
//      sched_process_fork   TOOL_fork   the thread that forks is followed?  --> its child's number into the map
//      sched_process_exit   TOOL_exit   this thread's number out of the map: numbers are used again
//
// User space reads the news of forks too late for a child that lives for a millisecond. The numbers are the kernel's own (the
// machine's, not a pid namespace's), since the tracepoint has those. The tracepoint's record says where the child's number stands
// (link/tracefs.h, forked_child_offset()), so this needs no BTF of the kernel. (Waits are told by processes:
// profile/off_cpu_dsl.cpp.)
//
// Those that it all began with, the roots, are processes, and have the numbers that our pid namespace has given them:
//
//      is the current thread's process a root?     the tool's own test: one number, a map ...
//      else: is the thread in the map?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "asm/builder.h"
#include "runtime/sys/namespaces.h"

namespace rawbpf::inline v0 {

/// Code that goes to `out` where the current thread isn't followed, and may use `thread` (u32) as its key. r6 has to stay.
using IsFollowed = std::function<void(Code &f, const Slot &thread, const Label &out)>;

/// `thread` = the current thread's number; goes to `out` where it isn't in `followed`.
void is_in_followed(Code &f, const MapRef &followed, const Slot &thread, const Label &out);

/// Code that goes to `otherwise` where r0, a process as our pid namespace numbers it, is no root. r6 to r9 have to stay.
using IsRoot = std::function<void(Code &f, const Label &otherwise)>;

/// Goes to `out` where the current thread is neither a root's nor in `followed` (nullopt: only roots' threads are wanted).
/// `thread` = its number. `ns`: our pid namespace; nullopt: the first one.
void is_of_family(Code &f, const std::optional<sys::Namespace> &ns, const Slot &thread, const IsRoot &is_root,
                  const std::optional<MapRef> &followed, const Label &out);

/// The programs TOOL_fork and TOOL_exit. `followed`: a hash of u32 (the thread) to u8. `child_at`: bytes from the start of
/// sched_process_fork's record.
void follow_threads(Builder &b, std::string_view tool, const MapRef &followed, uint16_t child_at, const IsFollowed &is_followed);

} // namespace rawbpf::inline v0
