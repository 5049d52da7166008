// SPDX-License-Identifier: MIT
// Loops that the verifier accepts without unrolling them. Part of <rawbpf/bpf.h>.
//
//     bpf_for(i, 0, n) { ... }                 any n, verified once; `break` and `continue` work (kernel 6.4)
//     bpf_repeat(100) { ... }                  the same without a variable
//     while (can_loop) { ... }                 ends by itself after 8 million rounds (6.9)
//
// bpf_for is the kernel's open-coded iterator (kfuncs bpf_iter_num_*): an object on the stack that must be made, asked for the
// next number and destroyed, which clang's cleanup attribute sees to however the loop is left.
// can_loop is the instruction may_goto: a conditional jump that the kernel takes when the program has looped for too long.
#pragma once

#if !defined(__VMLINUX_H__) && LINUX_VERSION_CODE < ((6 << 16) | (4 << 8))
/// The iterator's state on the program's stack, for headers before 6.4: the kernel's own (include/uapi/linux/bpf.h).
struct bpf_iter_num {
    __u64 __opaque[1]; ///< only the kernel reads and writes it
} __attribute__((aligned(8)));
#endif

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;

// The declaration that a for-loop opens with: makes the iterator; it is destroyed when the loop's scope ends.
#define RAWBPF_RANGE(start, end)                                                                                                 \
    struct bpf_iter_num rawbpf_it_ __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),                                   \
        *rawbpf_made_ __attribute__((unused)) =                                                                                  \
            (bpf_iter_num_new(&rawbpf_it_, (start), (end)), (void)bpf_iter_num_destroy, (struct bpf_iter_num *)0)

/// for (i = start; i < end; ++i). The comparison repeats what the iterator promises, for the verifier's bounds.
#define bpf_for(i, start, end)                                                                                                   \
    for (RAWBPF_RANGE(start, end); ({                                                                                            \
             int *rawbpf_next_ = bpf_iter_num_next(&rawbpf_it_);                                                                 \
             rawbpf_next_ && ((i) = *rawbpf_next_, (i) >= (start) && (i) < (end));                                               \
         });)
/// n times.
#define bpf_repeat(n) for (RAWBPF_RANGE(0, n); bpf_iter_num_next(&rawbpf_it_);)

/// Over any of the kernel's open-coded iterators: bpf_for_each(task, t, NULL, BPF_TASK_ITER_ALL_THREADS) { ... } uses
/// struct bpf_iter_task and bpf_iter_task_new, _next, _destroy, which the program declares.
#define bpf_for_each(kind, variable, ...)                                                                                        \
    for (struct bpf_iter_##kind rawbpf_it_ __attribute__((aligned(8), cleanup(bpf_iter_##kind##_destroy))),                      \
         *rawbpf_made_ __attribute__((unused)) =                                                                                 \
             (bpf_iter_##kind##_new(&rawbpf_it_, ##__VA_ARGS__), (void)bpf_iter_##kind##_destroy, (struct bpf_iter_##kind *)0);  \
         ((variable) = bpf_iter_##kind##_next(&rawbpf_it_));)

// may_goto by its bytes, since clang before 19 doesn't know its name: opcode 0xe5, registers 0, the jump's distance in
// instructions counted from the next one, imm 0. The distance and the lower half of imm are one .long, because clang's BPF
// assembler takes a .short with a label in it for the offset of a jump and writes it two bytes further on.
#define RAWBPF_MAY_GOTO(label)                                                                                                   \
    __asm__ goto(".byte 0xe5; .byte 0; .long ((%l[" #label "] - . - 6) / 8) & 0xffff; .short 0" :: ::label)
/// True until the kernel decides that the loop has run for long enough.
#define can_loop                                                                                                                 \
    ({                                                                                                                           \
        __label__ rawbpf_enough_, rawbpf_on_;                                                                                    \
        _Bool rawbpf_more_ = 1;                                                                                                  \
        RAWBPF_MAY_GOTO(rawbpf_enough_);                                                                                         \
        goto rawbpf_on_;                                                                                                         \
    rawbpf_enough_:                                                                                                              \
        rawbpf_more_ = 0;                                                                                                        \
    rawbpf_on_:;                                                                                                                 \
        rawbpf_more_;                                                                                                            \
    })
#define cond_break                                                                                                               \
    ({                                                                                                                           \
        if (!can_loop) break;                                                                                                    \
    })
