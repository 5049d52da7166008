// The program of `rawbpf profile --off-cpu`: at the scheduler's switch, the stacks of the thread that leaves, and how long the
// one that comes was away. Only in the C++ DSL.
#pragma once

#include "asm/unit.h"
#include "programs/labels/read_dsl.h"
#include "programs/profile/record.h"
#include "programs/unwind/program.h"

namespace rawbpf::inline v0 {

/// Processes that a command's process starts, and what they start, alive at a time.
inline constexpr uint32_t kMostFollowed = 8192;

/// In front of the ProfileRecord, whose t_ns is when the thread left its CPU, and cpu where that was. The rings are in the order
/// of `back_ns`.
struct OffCpuHead {
    uint64_t back_ns;   ///< CLOCK_MONOTONIC: when it came back
    uint64_t waited_ns; ///< between the two; OFF_CPU_STACK: it has just left
};
/// What follows isn't a wait, but a copy of the stack that one begins with: of the thread `tid`, which left at t_ns.
#define OFF_CPU_STACK (~0ull)

/// What happened on a CPU: begun = sent + too_short + lost_... + those that haven't come back.
struct OffCpuCounts {
    uint64_t begun; ///< waits: a wanted thread left its CPU and wasn't runnable
    uint64_t too_short;
    uint64_t preempted; ///< it was runnable: nothing that it waited for. Not in the sum
    uint64_t lost_ring_full;
    uint64_t lost_no_room; ///< OffCpuProgram::threads are known already
    uint64_t end_unseen;   ///< it was seen to leave, and then to leave again: among those sent
    uint64_t not_followed; ///< processes that found no room in profile_followed: their waits aren't in any other number
    uint64_t switch_ns;    ///< when the last switch was
};

struct OffCpuProgram {
    ProfileConfig config{};   ///< filter_pid: ANY or WANTED; skip_idle means nothing
    bool follow = false;      ///< with WANTED: what those processes start is wanted too
    bool wide_state = false;  ///< task_struct has `long state` (before 5.14), not `unsigned __state`
    uint64_t min_wait_ns = 0; ///< shorter ones are counted, and not sent
    /// Whose stacks are kept at a time: all that ever left a CPU to wait, and live. With stacks of 127 frames 2.2 KB each, and
    /// with interpreters' frames 2 KB more.
    uint32_t threads = 4096;
};

/// Program "profile" at raw_tp/sched_switch (capture/off_cpu_dsl.h; in a value of profile_off OffCpuHead, then the record), with
/// maps profile_ring_0 to profile_ring_7, profile_counts (OffCpuCounts), profile_off (by the kernel's number of a thread; away
/// while its record's t_ns isn't 0), profile_blank, and profile_pids and profile_cgroup as profile_unit() has them. Where the
/// walk makes copies also profile_copies. With `follow` also "profile_fork" and "profile_exit", and profile_followed. All need
/// the kernel's BTF. With `unwind` what Unwinder declares.
/// With `languages`, too, what LanguageWalk declares: interpreters' frames follow the stacks. With `labels` what LabelReading
/// declares: the running request's labels follow, as they were when the thread left.
[[nodiscard]] Unit off_cpu_unit(const OffCpuProgram &options, const UnwindProgramOptions *unwind = nullptr,
                                bool languages = false, const LabelParts *labels = nullptr);

} // namespace rawbpf::inline v0
