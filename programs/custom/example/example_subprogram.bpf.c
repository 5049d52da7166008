// SPDX-License-Identifier: MIT OR GPL-2.0-only
// example_tailcall.bpf.c without the tail call: the capture is a function of the same program, which goes on afterwards.
#include <rawbpf/bpf.h>

#include "custom_trace.h"

LICENSE("Dual MIT/GPL");

__u64 calls, largest; // `rawbpf load --attach` would show them

SEC("uprobe")
int example(struct pt_regs *ctx) {
    __u64 caller = 0, context = PT_REGS_PARM1(ctx);
#if defined(__TARGET_ARCH_x86)
    bpf_probe_read_user(&caller, sizeof caller, (void *)PT_REGS_SP(ctx));
#elif defined(__TARGET_ARCH_arm64)
    caller = PT_REGS_RET(ctx); // the link register
#endif
    custom_trace(ctx, context, caller);
    __sync_fetch_and_add(&calls, 1);
    if (context > largest) largest = context;
    return 0;
}
