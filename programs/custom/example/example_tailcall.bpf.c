// SPDX-License-Identifier: MIT OR GPL-2.0-only
// An external program: its first argument is the context, and custom__generic does the rest.
//
//     clang --target=bpf -D__TARGET_ARCH_x86 -O2 -g -I INCLUDE -c example_tailcall.bpf.c -o example_tailcall.bpf.o
//     sudo rawbpf custom --object example_tailcall.bpf.o ./test_program:report_trace -v -- ./test_program
//
// With -DPER_CPU it stores the context where programs for the OpenTelemetry profiler do: in this CPU's slot, which is another
// thread's as soon as this one is preempted. Such contexts are taken away, and their traces counted as lost.
#ifdef WITH_LIBBPF // the same with the headers of libbpf, for its loader or bpftool's
#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
char LICENSE_[] SEC("license") = "Dual MIT/GPL";
#else
#include <rawbpf/bpf.h>
LICENSE("Dual MIT/GPL");
#endif

// Definitions must be these, for rawbpf puts its own maps in their place.
#ifdef PER_CPU
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} custom_context_map SEC(".maps");
#else
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 10240);
    __type(key, __u64); // bpf_get_current_pid_tgid()
    __type(value, __u64);
} custom_context_by_thread SEC(".maps");
#endif

// Empty: slot 0 becomes custom__generic.
struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u32));
} prog_array SEC(".maps");

SEC("uprobe") // where is said on the command line
int example(struct pt_regs *ctx) {
    __u64 context = PT_REGS_PARM1(ctx);
#ifdef PER_CPU
    __u32 zero = 0;
    __u64 *slot = bpf_map_lookup_elem(&custom_context_map, &zero);
    if (!slot) return 0;
    *slot = context;
#else
    __u64 thread = bpf_get_current_pid_tgid();
    if (bpf_map_update_elem(&custom_context_by_thread, &thread, &context, BPF_ANY)) return 0;
#endif
    bpf_tail_call(ctx, &prog_array, 0);
    return 0; // only where the slot is empty
}
