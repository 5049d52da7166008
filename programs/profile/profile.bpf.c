// SPDX-License-Identifier: MIT OR GPL-2.0-only
// A first BPF program in C: the profiler's kernel half. A perf event fires on a CPU, this runs in its interrupt, and one record
// goes to the ring. programs/labs/profiler-in-c is the lesson: compile it, run it with `rawbpf profile --object profile.bpf.o`,
// change it.
//
//      perf event --> count --> filter --> kernel stack, user stack --> ring
//                     fired     idle, pid, cgroup    right behind each other, so that one copy sends just what was captured
//
// It runs with interrupts off (in an NMI with --hw), so it must be short: no stack is stored or hashed in the kernel, and the
// reader is woken only when the ring begins to fill. Kernel 5.8 (ring buffer); bpf_get_ns_current_pid_tgid is 5.7.
#include <rawbpf/bpf.h>

#include "programs/capture/user_mode.h"
#include "programs/profile/record.h"

LICENSE("Dual MIT/GPL");

const volatile struct ProfileConfig profile_config = {.want_kernel = 1, .want_user = 1, .skip_idle = 1};

/// Samples on their way to the reader: CPU n writes to ring n modulo PROFILE_RINGS. In a single ring the lock and both positions
/// travel between the CPUs at every sample, which costs as much as all the rest but the stacks. Plain maps instead of a map of
/// maps: filling a slot of that waits for a grace period, 10 ms each. max_entries is set before loading.
#define RING(n)                                                                                                                  \
    struct {                                                                                                                     \
        __uint(type, BPF_MAP_TYPE_RINGBUF);                                                                                      \
        __uint(max_entries, 1 << 18);                                                                                            \
    } profile_ring_##n SEC(".maps")
RING(0);
RING(1);
RING(2);
RING(3);
RING(4);
RING(5);
RING(6);
RING(7);

/// The counts, and the place where a record is put together: that is larger than the 512 bytes of BPF stack.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ProfileCpu);
} profile_counts SEC(".maps");

/// The processes wanted, or those to leave out.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, __u8);
} profile_pids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, 4);
    __uint(value_size, 4);
} profile_cgroup SEC(".maps");

/// Two samples of three, typically. Asking for the kernel stack all the same would give nothing, and take a helper call that
/// clears a kilobyte.
static __always_inline int in_user_code(void *context) {
#ifdef RAWBPF_MODE_OFFSET
    return (*(volatile __u64 *)((char *)context + RAWBPF_MODE_OFFSET) >> RAWBPF_MODE_SHIFT & RAWBPF_MODE_MASK) ==
           RAWBPF_MODE_USER;
#else
    return 0;
#endif
}

/// How full the ring is, is asked at every sixteenth sample of a clock: a ring holds at least sixty. Events can come so fast, and
/// in turns with what is filtered, that each has to ask.
static __always_inline int send(void *ring, struct ProfileScratch *scratch, long captured, struct ProfileCounts *counts) {
    __u64 wake = BPF_RB_NO_WAKEUP;
    if ((profile_config.every || (counts->fired & 15) == 0) &&
        bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >= profile_config.wakeup_bytes)
        wake = BPF_RB_FORCE_WAKEUP;
    if (bpf_ringbuf_output(ring, scratch, sizeof scratch->record + captured, wake)) counts->lost_ring_full++;
    return 0;
}

SEC("perf_event")
int profile(void *context) {
    __u32 zero = 0;
    struct ProfileCpu *own = bpf_map_lookup_elem(&profile_counts, &zero);
    if (!own) return 0;
    struct ProfileCounts *counts = &own->counts;
    counts->fired++;

    __u64 id = bpf_get_current_pid_tgid();
    __u32 pid = id >> 32, tid = (__u32)id;
    if (profile_config.skip_idle && tid == 0) {
        counts->filtered_idle++;
        return 0;
    }
    if (profile_config.pidns_ino && tid != 0) {
        struct bpf_pidns_info numbers = {};
        if (bpf_get_ns_current_pid_tgid(profile_config.pidns_dev, profile_config.pidns_ino, &numbers, sizeof numbers)) {
            counts->filtered_pid_namespace++;
            return 0;
        }
        pid = numbers.tgid;
        tid = numbers.pid;
    }
    if (profile_config.filter_pid) {
        int named = bpf_map_lookup_elem(&profile_pids, &pid) != NULL;
        if (named != (profile_config.filter_pid == PROFILE_PIDS_WANTED)) {
            counts->filtered_pid++;
            return 0;
        }
    }
    if (profile_config.filter_cgroup && bpf_current_task_under_cgroup(&profile_cgroup, 0) != 1) {
        counts->filtered_cgroup++;
        return 0;
    }

    if (profile_config.comm[0]) {
        __u64 name[2];
        bpf_get_current_comm(name, sizeof name);
        if (name[0] != profile_config.comm[0] || name[1] != profile_config.comm[1]) {
            counts->filtered_comm++;
            return 0;
        }
    }

    if (profile_config.every > 1 && ++counts->wanted % profile_config.every) {
        counts->sampled_out++;
        return 0;
    }

    struct ProfileScratch *scratch = &own->scratch;
    struct RecordHead *record = &scratch->record.head;
    record->t_ns = bpf_ktime_get_ns();
    record->pid = pid;
    record->tid = tid;
    record->cpu = bpf_get_smp_processor_id();
    record->ending = 0;
    scratch->record.key = 0; // counting in the kernel is for the DSL's program, profile_dsl.cpp
    bpf_get_current_comm(record->comm, sizeof record->comm);

    // The helper returns at most the size it was given, which the verifier knows; so `captured` stays within the scratch.
    long captured = 0;
    if (profile_config.want_kernel && (profile_config.tracepoint || !in_user_code(context)))
        captured = bpf_get_stack(context, scratch->frames, RAWBPF_STACK_BYTES, 0);
    record->kernel_bytes = captured;
    if (captured < 0) captured = 0;

    long user = 0;
    if (profile_config.want_user)
        user = bpf_get_stack(context, (char *)scratch->frames + captured, RAWBPF_STACK_BYTES, BPF_F_USER_STACK);
    record->user_bytes = user;
    if (user > 0) captured += user;

    // Each case by itself: the verifier wants to see which map a helper is given.
    switch (record->cpu % PROFILE_RINGS) {
    case 0: return send(&profile_ring_0, scratch, captured, counts);
    case 1: return send(&profile_ring_1, scratch, captured, counts);
    case 2: return send(&profile_ring_2, scratch, captured, counts);
    case 3: return send(&profile_ring_3, scratch, captured, counts);
    case 4: return send(&profile_ring_4, scratch, captured, counts);
    case 5: return send(&profile_ring_5, scratch, captured, counts);
    case 6: return send(&profile_ring_6, scratch, captured, counts);
    default: return send(&profile_ring_7, scratch, captured, counts);
    }
}
