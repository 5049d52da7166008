// SPDX-License-Identifier: MIT
// Arguments of traced functions. Part of <rawbpf/bpf.h>.
//
//     SEC("kprobe/vfs_read")
//     int BPF_KPROBE(on_read, struct file *file, char *buf, size_t count) { ... }       arguments straight from the registers
//
//     SEC("fentry/vfs_read")
//     int BPF_PROG(on_read, struct file *file, char *buf, size_t count) { ... }         arguments from the u64 array in ctx
//
// A kprobe or uprobe program gets `struct pt_regs`: the registers as they were saved. Which of them holds argument N is the
// calling convention of the machine; the places below are those of the kernel's asm/ptrace.h, which are ABI and don't move:
//
//              1    2    3    4    5    6    7    8    returned  stack  program  frame
//     x86_64   di   si   dx   cx   r8   r9   -    -    ax        sp     ip       bp        (System V ABI)
//     arm64    x0   x1   x2   x3   x4   x5   x6   x7   x0        sp     pc       x29       (AAPCS64)
//     riscv    a0   a1   a2   a3   a4   a5   a6   a7   a0        sp     pc       s0        (RISC-V psABI)
//
// In a system call of x86_64 argument 4 is in r10 instead of cx.
#pragma once

// Which machine: -D__TARGET_ARCH_x86, _arm64, _riscv or _arm says it; else the only one whose headers are installed.
#if !defined(__TARGET_ARCH_x86) && !defined(__TARGET_ARCH_arm64) && !defined(__TARGET_ARCH_riscv) && !defined(__TARGET_ARCH_arm)
#if defined(__x86_64__)
#define __TARGET_ARCH_x86
#elif defined(__aarch64__)
#define __TARGET_ARCH_arm64
#elif defined(__riscv)
#define __TARGET_ARCH_riscv
#elif defined(__arm__)
#define __TARGET_ARCH_arm
#else
#if __has_include(<x86_64-linux-gnu/asm/ptrace.h>) || __has_include(<asm/prctl.h>)
#define RAWBPF_SEEN_X86 1
#else
#define RAWBPF_SEEN_X86 0
#endif
#if __has_include(<aarch64-linux-gnu/asm/ptrace.h>) || __has_include(<asm/sve_context.h>)
#define RAWBPF_SEEN_ARM64 1
#else
#define RAWBPF_SEEN_ARM64 0
#endif
#if RAWBPF_SEEN_X86 && !RAWBPF_SEEN_ARM64
#define __TARGET_ARCH_x86
#elif RAWBPF_SEEN_ARM64 && !RAWBPF_SEEN_X86
#define __TARGET_ARCH_arm64
#endif
#endif
#endif

#if defined(__TARGET_ARCH_x86)

struct rawbpf_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define RAWBPF_REG_1 di
#define RAWBPF_REG_2 si
#define RAWBPF_REG_3 dx
#define RAWBPF_REG_4 cx
#define RAWBPF_REG_5 r8
#define RAWBPF_REG_6 r9
#define RAWBPF_REG_4_SYSCALL r10
#define RAWBPF_REG_RC ax
#define RAWBPF_REG_SP sp
#define RAWBPF_REG_IP ip
#define RAWBPF_REG_FP bp
#define RAWBPF_REG_SYSCALL orig_ax

#elif defined(__TARGET_ARCH_arm64)

struct rawbpf_regs {
    unsigned long long regs[31], sp, pc, pstate, orig_x0;
    int syscallno;
};
#define RAWBPF_REG_1 regs[0]
#define RAWBPF_REG_2 regs[1]
#define RAWBPF_REG_3 regs[2]
#define RAWBPF_REG_4 regs[3]
#define RAWBPF_REG_5 regs[4]
#define RAWBPF_REG_6 regs[5]
#define RAWBPF_REG_7 regs[6]
#define RAWBPF_REG_8 regs[7]
#define RAWBPF_REG_4_SYSCALL regs[3]
#define RAWBPF_REG_RC regs[0]
#define RAWBPF_REG_SP sp
#define RAWBPF_REG_IP pc
#define RAWBPF_REG_FP regs[29]
#define RAWBPF_REG_SYSCALL regs[8]
#define RAWBPF_REG_RET regs[30]

#elif defined(__TARGET_ARCH_riscv)

struct rawbpf_regs {
    unsigned long pc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;
    unsigned long s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, t3, t4, t5, t6;
};
#define RAWBPF_REG_1 a0
#define RAWBPF_REG_2 a1
#define RAWBPF_REG_3 a2
#define RAWBPF_REG_4 a3
#define RAWBPF_REG_5 a4
#define RAWBPF_REG_6 a5
#define RAWBPF_REG_7 a6
#define RAWBPF_REG_8 a7
#define RAWBPF_REG_4_SYSCALL a3
#define RAWBPF_REG_RC a0
#define RAWBPF_REG_SP sp
#define RAWBPF_REG_IP pc
#define RAWBPF_REG_FP s0
#define RAWBPF_REG_SYSCALL a7
#define RAWBPF_REG_RET ra

#elif defined(__TARGET_ARCH_arm)

struct rawbpf_regs {
    unsigned int uregs[18]; ///< r0 to r15, cpsr, ORIG_r0
};
#define RAWBPF_REG_1 uregs[0]
#define RAWBPF_REG_2 uregs[1]
#define RAWBPF_REG_3 uregs[2]
#define RAWBPF_REG_4 uregs[3]
#define RAWBPF_REG_5_SYSCALL uregs[4]
#define RAWBPF_REG_6_SYSCALL uregs[5]
#define RAWBPF_REG_4_SYSCALL uregs[3]
#define RAWBPF_REG_RC uregs[0]
#define RAWBPF_REG_SP uregs[13]
#define RAWBPF_REG_IP uregs[15]
#define RAWBPF_REG_FP uregs[11]
#define RAWBPF_REG_SYSCALL uregs[7]
#define RAWBPF_REG_RET uregs[14]

#endif

#if defined(RAWBPF_REG_1) && !defined(RAWBPF_REG_5_SYSCALL)
#define RAWBPF_REG_5_SYSCALL RAWBPF_REG_5
#define RAWBPF_REG_6_SYSCALL RAWBPF_REG_6
#endif

#if defined(__TARGET_ARCH_arm) // 32 bits become a BPF program's 64
#define RAWBPF_REG(ctx, reg) ((unsigned long)((const struct rawbpf_regs *)(ctx))->reg)
#define RAWBPF_REG_READ(ctx, reg) ((unsigned long)BPF_PROBE_READ((const struct rawbpf_regs *)(ctx), reg))
#elif defined(RAWBPF_REG_1)
#define RAWBPF_REG(ctx, reg) (((const struct rawbpf_regs *)(ctx))->reg)
#define RAWBPF_REG_READ(ctx, reg) BPF_PROBE_READ((const struct rawbpf_regs *)(ctx), reg)
#else
struct rawbpf_regs;
#define RAWBPF_REG(ctx, reg)                                                                                                     \
    ({                                                                                                                           \
        _Pragma("GCC error \"registers need -D__TARGET_ARCH_x86, -D__TARGET_ARCH_arm64, _riscv or _arm\"");                      \
        0ull;                                                                                                                    \
    })
#define RAWBPF_REG_READ RAWBPF_REG
#endif

/// Argument N of a kprobe's or uprobe's function, from its context. x86_64 passes six in registers, arm64 and riscv64 eight,
/// 32-bit ARM four.
#define PT_REGS_PARM1(ctx) RAWBPF_REG(ctx, RAWBPF_REG_1)
#define PT_REGS_PARM2(ctx) RAWBPF_REG(ctx, RAWBPF_REG_2)
#define PT_REGS_PARM3(ctx) RAWBPF_REG(ctx, RAWBPF_REG_3)
#define PT_REGS_PARM4(ctx) RAWBPF_REG(ctx, RAWBPF_REG_4)
#define PT_REGS_PARM5(ctx) RAWBPF_REG(ctx, RAWBPF_REG_5)
#define PT_REGS_PARM6(ctx) RAWBPF_REG(ctx, RAWBPF_REG_6)
#define PT_REGS_PARM7(ctx) RAWBPF_REG(ctx, RAWBPF_REG_7)
#define PT_REGS_PARM8(ctx) RAWBPF_REG(ctx, RAWBPF_REG_8)
/// What the function returned (kretprobe, uretprobe); stack pointer; program counter; frame pointer.
#define PT_REGS_RC(ctx) RAWBPF_REG(ctx, RAWBPF_REG_RC)
#define PT_REGS_SP(ctx) RAWBPF_REG(ctx, RAWBPF_REG_SP)
#define PT_REGS_IP(ctx) RAWBPF_REG(ctx, RAWBPF_REG_IP)
#define PT_REGS_FP(ctx) RAWBPF_REG(ctx, RAWBPF_REG_FP)
/// The same from registers that have to be read with a helper (those that are not the context).
#define PT_REGS_PARM1_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_1)
#define PT_REGS_PARM2_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_2)
#define PT_REGS_PARM3_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_3)
#define PT_REGS_PARM4_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_4)
#define PT_REGS_PARM5_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_5)
#define PT_REGS_PARM6_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_6)
#define PT_REGS_PARM7_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_7)
#define PT_REGS_PARM8_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_8)
#define PT_REGS_RC_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_RC)
#define PT_REGS_SP_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_SP)
#define PT_REGS_IP_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_IP)
#define PT_REGS_FP_CORE(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_FP)

/// Where the function returns to. At its first instruction only: x86_64 has it on top of the stack, the others in a register.
#if defined(RAWBPF_REG_RET)
#define PT_REGS_RET(ctx) RAWBPF_REG(ctx, RAWBPF_REG_RET)
#define BPF_KPROBE_READ_RET_IP(ip, ctx) ({ (ip) = PT_REGS_RET(ctx); })
#else
#define PT_REGS_RET(ctx) PT_REGS_SP(ctx)
#define BPF_KPROBE_READ_RET_IP(ip, ctx) bpf_probe_read_kernel(&(ip), sizeof(ip), (void *)PT_REGS_SP(ctx))
#endif
#define BPF_KRETPROBE_READ_RET_IP BPF_KPROBE_READ_RET_IP

/// A perf_event program's context is the registers (PT_REGS_IP(ctx) and the others work), then the sample's period and, where the
/// event records one, its data address. The registers there are what user space knows of them: 168 bytes, 272 on arm64, 256 on
/// riscv64, 72 on 32-bit ARM.
#if defined(__TARGET_ARCH_arm64)
#define RAWBPF_PERF_EVENT_TAIL 272
#elif defined(__TARGET_ARCH_riscv)
#define RAWBPF_PERF_EVENT_TAIL 256
#elif defined(__TARGET_ARCH_arm)
#define RAWBPF_PERF_EVENT_TAIL 72
#else
#define RAWBPF_PERF_EVENT_TAIL 168
#endif
#define PERF_EVENT_PERIOD(ctx) (((const unsigned long long *)((const char *)(ctx) + RAWBPF_PERF_EVENT_TAIL))[0])
#define PERF_EVENT_ADDR(ctx) (((const unsigned long long *)((const char *)(ctx) + RAWBPF_PERF_EVENT_TAIL))[1]) ///< 4.17

// --- System calls -------------------------------------------------------------------------------------------------------------
//
// __x64_sys_openat, __arm64_sys_openat and __riscv_sys_openat take one argument: a pointer to the pt_regs of the process, which
// hold the real arguments. (x86_64 since 4.17, arm64 since 4.19, riscv64 since 6.6.) 32-bit ARM's sys_openat
// takes them itself; the fifth and sixth are read where the process left them.

/// The process's registers, from the context of a kprobe on a system call's function.
#if defined(__TARGET_ARCH_arm)
#define PT_REGS_SYSCALL_REGS(ctx) ((struct pt_regs *)(ctx))
#else
#define PT_REGS_SYSCALL_REGS(ctx) ((struct pt_regs *)PT_REGS_PARM1(ctx))
#endif
#if defined(__TARGET_ARCH_arm64)
/// x0 is overwritten by the result, so the kernel keeps the first argument apart.
struct pt_regs___rawbpf {
    unsigned long long orig_x0;
} __attribute__((preserve_access_index));
#define PT_REGS_PARM1_CORE_SYSCALL(regs) BPF_CORE_READ((const struct pt_regs___rawbpf *)(regs), orig_x0)
#elif defined(__TARGET_ARCH_riscv)
/// Likewise a0.
struct pt_regs___rawbpf {
    unsigned long orig_a0;
} __attribute__((preserve_access_index));
#define PT_REGS_PARM1_CORE_SYSCALL(regs) BPF_CORE_READ((const struct pt_regs___rawbpf *)(regs), orig_a0)
#else
#define PT_REGS_PARM1_CORE_SYSCALL(regs) PT_REGS_PARM1_CORE(regs)
#endif
#define PT_REGS_PARM2_CORE_SYSCALL(regs) PT_REGS_PARM2_CORE(regs)
#define PT_REGS_PARM3_CORE_SYSCALL(regs) PT_REGS_PARM3_CORE(regs)
#define PT_REGS_PARM4_CORE_SYSCALL(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_4_SYSCALL)
#define PT_REGS_PARM5_CORE_SYSCALL(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_5_SYSCALL)
#define PT_REGS_PARM6_CORE_SYSCALL(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_6_SYSCALL)
#define PT_REGS_PARM1_SYSCALL(regs) PT_REGS_PARM1_CORE_SYSCALL(regs)
#define PT_REGS_PARM2_SYSCALL(regs) PT_REGS_PARM2(regs)
#define PT_REGS_PARM3_SYSCALL(regs) PT_REGS_PARM3(regs)
#define PT_REGS_PARM4_SYSCALL(regs) RAWBPF_REG(regs, RAWBPF_REG_4_SYSCALL)
#define PT_REGS_PARM5_SYSCALL(regs) RAWBPF_REG(regs, RAWBPF_REG_5_SYSCALL)
#define PT_REGS_PARM6_SYSCALL(regs) RAWBPF_REG(regs, RAWBPF_REG_6_SYSCALL)
/// The number of the system call.
#define PT_REGS_SYSCALL_NR(regs) RAWBPF_REG_READ(regs, RAWBPF_REG_SYSCALL)

// --- Wrappers: a program with its arguments spelled out
// --------------------------------------------------------------------------
//
// The program proper takes the context and calls an inlined function with the author's parameters. Each value is passed as a
// pointer and converted to the parameter's type, whatever that is.

#define RAWBPF_ARGS_0(get) ctx
#define RAWBPF_ARGS_1(get) RAWBPF_ARGS_0(get), (void *)get(1)
#define RAWBPF_ARGS_2(get) RAWBPF_ARGS_1(get), (void *)get(2)
#define RAWBPF_ARGS_3(get) RAWBPF_ARGS_2(get), (void *)get(3)
#define RAWBPF_ARGS_4(get) RAWBPF_ARGS_3(get), (void *)get(4)
#define RAWBPF_ARGS_5(get) RAWBPF_ARGS_4(get), (void *)get(5)
#define RAWBPF_ARGS_6(get) RAWBPF_ARGS_5(get), (void *)get(6)
#define RAWBPF_ARGS_7(get) RAWBPF_ARGS_6(get), (void *)get(7)
#define RAWBPF_ARGS_8(get) RAWBPF_ARGS_7(get), (void *)get(8)
#define RAWBPF_ARGS_9(get) RAWBPF_ARGS_8(get), (void *)get(9)
#define RAWBPF_ARGS_10(get) RAWBPF_ARGS_9(get), (void *)get(10)
#define RAWBPF_ARGS_11(get) RAWBPF_ARGS_10(get), (void *)get(11)
#define RAWBPF_ARGS_12(get) RAWBPF_ARGS_11(get), (void *)get(12)

#define RAWBPF_GET_SLOT(n) ctx[n - 1]
#define RAWBPF_GET_REGISTER(n) PT_REGS_PARM##n(ctx)
#define RAWBPF_GET_RETURNED(n) PT_REGS_RC(ctx)
#define RAWBPF_GET_SYSCALL(n) PT_REGS_PARM##n##_CORE_SYSCALL(rawbpf_regs_)

#define RAWBPF_PROGRAM(name, context, before, get, ...)                                                                          \
    name(context ctx);                                                                                                           \
    static __always_inline typeof(name(0)) rawbpf_body_##name(context ctx, ##__VA_ARGS__);                                       \
    typeof(name(0)) name(context ctx) {                                                                                          \
        before _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wint-conversion\"") return rawbpf_body_##name(  \
            RAWBPF_JOIN(RAWBPF_ARGS_, RAWBPF_COUNT(__VA_ARGS__))(get));                                                          \
        _Pragma("GCC diagnostic pop")                                                                                            \
    }                                                                                                                            \
    static __always_inline typeof(name(0)) rawbpf_body_##name(context ctx __unused, ##__VA_ARGS__)

/// Programs whose context is an array of u64: fentry, fexit, fmod_ret, lsm, tp_btf, raw_tp, iter, struct_ops.
#define BPF_PROG(name, ...) RAWBPF_PROGRAM(name, unsigned long long *, , RAWBPF_GET_SLOT, ##__VA_ARGS__)
/// kprobe, uprobe: the function's arguments.
#define BPF_KPROBE(name, ...) RAWBPF_PROGRAM(name, struct pt_regs *, , RAWBPF_GET_REGISTER, ##__VA_ARGS__)
#define BPF_UPROBE(name, ...) BPF_KPROBE(name, ##__VA_ARGS__)
/// kretprobe, uretprobe: what it returned, or nothing.
#define BPF_KRETPROBE(name, ...) RAWBPF_PROGRAM(name, struct pt_regs *, , RAWBPF_GET_RETURNED, ##__VA_ARGS__)
#define BPF_URETPROBE(name, ...) BPF_KRETPROBE(name, ##__VA_ARGS__)
/// kprobe on a system call's function: the arguments that the process passed.
#define BPF_KSYSCALL(name, ...)                                                                                                  \
    RAWBPF_PROGRAM(name, struct pt_regs *, struct pt_regs *rawbpf_regs_ __unused = PT_REGS_SYSCALL_REGS(ctx);                    \
                   , RAWBPF_GET_SYSCALL, ##__VA_ARGS__)
#define BPF_KPROBE_SYSCALL BPF_KSYSCALL
