// Which field of the interrupted registers tells that user code ran: the context's register at RAWBPF_MODE_OFFSET, shifted down
// by RAWBPF_MODE_SHIFT and masked. If user code ran, there is no kernel stack to take. Of struct pt_regs, which the context of
// kprobes and uprobes is, and which that of a perf event (struct bpf_perf_event_data) starts with. Compiled by both, C and C++;
// the BPF side is told the machine by the build.
#pragma once

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)
#define RAWBPF_MODE_OFFSET 136 /* cs of struct pt_regs: the low two bits are the privilege ring */
#define RAWBPF_MODE_MASK 3
#define RAWBPF_MODE_USER 3
#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define RAWBPF_MODE_OFFSET 264 /* pstate of struct user_pt_regs: the low four bits are the exception level */
#define RAWBPF_MODE_MASK 15
#define RAWBPF_MODE_USER 0
#elif defined(__TARGET_ARCH_riscv) || defined(__riscv)
#define RAWBPF_MODE_OFFSET 0 /* pc of struct user_regs_struct, which has no mode: the kernel is in the upper half */
#define RAWBPF_MODE_SHIFT 63
#define RAWBPF_MODE_MASK 1
#define RAWBPF_MODE_USER 0
#elif defined(__TARGET_ARCH_arm) || defined(__arm__)
#define RAWBPF_MODE_OFFSET 64 /* cpsr of struct pt_regs, 32 bits as every register: the low five bits are the mode */
#define RAWBPF_MODE_MASK 31
#define RAWBPF_MODE_USER 16
#endif

#ifndef RAWBPF_MODE_SHIFT
#define RAWBPF_MODE_SHIFT 0
#endif
