// SPDX-License-Identifier: MIT OR GPL-2.0-only
// The generic program as a function: custom_trace(ctx, context) instead of a context map, a prog array and a tail call. For
// programs that go on afterwards (a tail call doesn't come back), and for types without a generic program.
//
// The maps are put in the place of rawbpf's own by `rawbpf custom --object`. A record has room for 48 addresses each of kernel
// and user stack, whatever is used of it: 840 bytes. (custom__generic sends only what it captured.)
#pragma once

#define CUSTOM_FRAMES 48

struct custom_record {
    __u64 t_ns;
    __u32 pid, tid, cpu;
    __s32 kernel_bytes, user_bytes;
    __u32 ending;
    char comm[16];
    __u64 context, caller;
    __u32 flags, origin;
    __u64 frames[2 * CUSTOM_FRAMES];
};

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} custom_traces SEC(".maps");

enum { CUSTOM_ENTERED = 3, CUSTOM_RING_FULL = 8, CUSTOM_TRUNCATED = 2 };
struct custom_counts {
    __u64 number[14];
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct custom_counts);
} custom_counts SEC(".maps");

/// `caller`: where the traced function returns to, as long as it is at its first instruction: the top of the stack, arm64's link
/// register.
static __attribute__((noinline)) int custom_trace(void *ctx, __u64 context, __u64 caller) {
    __u32 zero = 0;
    struct custom_counts *counts = bpf_map_lookup_elem(&custom_counts, &zero);
    if (!counts) return 0;
    __sync_fetch_and_add(&counts->number[CUSTOM_ENTERED], 1);
    struct custom_record *record = bpf_ringbuf_reserve(&custom_traces, sizeof *record, 0);
    if (!record) {
        __sync_fetch_and_add(&counts->number[CUSTOM_RING_FULL], 1);
        return 0;
    }
    __u64 thread = bpf_get_current_pid_tgid();
    record->t_ns = bpf_ktime_get_ns();
    record->context = context;
    record->caller = caller;
    record->pid = thread >> 32;
    record->tid = (__u32)thread;
    record->cpu = bpf_get_smp_processor_id();
    record->flags = record->ending = 0;
    record->origin = 3;
    bpf_get_current_comm(record->comm, sizeof record->comm);
    long kernel = bpf_get_stack(ctx, record->frames, CUSTOM_FRAMES * 8, 0);
    record->kernel_bytes = kernel;
    if (kernel < 0) kernel = 0;
    record->user_bytes = bpf_get_stack(ctx, (char *)record->frames + kernel, CUSTOM_FRAMES * 8, BPF_F_USER_STACK);
    if (kernel == CUSTOM_FRAMES * 8 || record->user_bytes == CUSTOM_FRAMES * 8) record->flags = CUSTOM_TRUNCATED;
    bpf_ringbuf_submit(record, 0);
    return 1;
}
