// What the BPF side and the C++ side of the profiler agree on. Compiled by both: C with clang -target bpf, and C++.
#pragma once

#include <linux/types.h>

#include "programs/capture/record_head.h"

#define PROFILE_RINGS 8 /* profile_ring_0 and so on */

/* Of RecordHead.ending of a program that has tables: why the walk ended, UNWIND_ENDED_... of runtime/unwind/layout.h. */
#define PROFILE_ENDING(ending) ((ending)&0xff)

#ifdef __cplusplus
using rawbpf::RecordHead;
#endif

/// The fixed part of a record; the captured addresses follow. A sample with 3 kernel and 12 user frames takes 56 + 15 * 8 = 176
/// bytes, not 2,088.
struct ProfileRecord {
    struct RecordHead head;
    __u64 key; ///< further samples like this one are counted under it (stack_counting.h); 0: they aren't
};

/// Where the program builds a record: one a CPU.
struct ProfileScratch {
    struct ProfileRecord record;
    __u64 frames[2 * RAWBPF_STACK_FRAMES];
};

#define PROFILE_PIDS_ANY 0      /* nothing: all are sent */
#define PROFILE_PIDS_WANTED 1   /* only those in it are sent */
#define PROFILE_PIDS_LEFT_OUT 2 /* all but those in it are sent */

/// Decided before loading. In the C program it is the read-only global `profile_config`, so that the verifier removes what is
/// switched off; the DSL twin only generates what is switched on.
struct ProfileConfig {
    __u32 want_kernel;   ///< capture kernel stacks
    __u32 want_user;     ///< capture user stacks
    __u32 skip_idle;     ///< don't send samples of pid 0 (count them)
    __u32 filter_pid;    ///< PROFILE_PIDS_...: what being in the map `profile_pids` means for a process
    __u32 filter_cgroup; ///< send only tasks under the cgroup in `profile_cgroup`[0]
    __u32 wakeup_bytes;  ///< wake the reader at once when this much is waiting in the ring; below it, the reader's clock does
    __u32 tracepoint;    ///< it runs at a tracepoint, not on a perf event: the context has no registers
    __u32 every;         ///< 0: at a clock's ticks. Else at events that come as they like, and each so many-th is sent
    __u64 comm[2];       ///< send only threads of this name: its 16 bytes, NUL-padded; 0, 0: all
    __u64 pidns_dev;     ///< device and inode of rawbpf's pid namespace, or 0, 0 in the initial one
    __u64 pidns_ino;
};

/// What happened on a CPU. fired = sent + all the others, exact: the program isn't re-entered on a CPU.
struct ProfileCounts {
    __u64 fired;
    __u64 filtered_idle;
    __u64 filtered_pid;
    __u64 filtered_cgroup;
    __u64 filtered_pid_namespace; ///< the task isn't in rawbpf's pid namespace, so it has no number here
    __u64 lost_ring_full;
    __u64 sampled_out; ///< not the N-th, see ProfileConfig.every
    __u64 wanted;      ///< came through all filters: what `every` counts by
    __u64 filtered_comm;
};

/// What each CPU has for itself, in `profile_counts`[0]: found by one lookup.
struct ProfileCpu {
    struct ProfileCounts counts; ///< first: user space reads only these
    struct ProfileScratch scratch;
};
