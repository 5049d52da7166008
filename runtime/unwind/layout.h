// SPDX-License-Identifier: MIT
// Unwind tables as the kernel half reads them. Compiled by both sides: the generator of the BPF program takes the offsets, user
// space writes the bytes.
//
// A stack without frame pointers is walked with what the compiler left in .eh_frame: for each instruction, where the frame begins
// (the CFA, the stack pointer's value before the call), and where the caller's frame pointer was saved. There are few different
// such rules (1,428 in a million and a half rows of Debian's files), so a row is an address and the number of a rule: 4 bytes.
//
//      unwind_processes: pid --> { where its mappings are, how many }                          a hash
//                                   |
//      unwind_pools[n]              v                     array of maps; each is one value of 1 MiB, written through mmap(2)
//        | UnwindMapping, by start: [start end) bias --+
//        |                                             v
//        | UnwindPage, one for 64 KiB of code: { where its first row is, how many }            a module's directory
//        |                    |
//        | rows, ascending:   v    low 16 bits of the address | rule, 16 bits
//        |                                                       |
//      unwind_rules[rule]: UnwindRule  <-------------------------+                             an array
//
// Everything that a lookup needs of one kind lies in one pool, so after one map lookup each step of the binary search is a load.
// A position is 32 bits: pool << 20 | byte in the pool; what it points to is aligned to its size. What is pointed to doesn't move
// while a pointer to it can be seen: user space writes first, publishes after, and waits before it writes over old bytes.
// Needs maps of maps whose members are mapped (BPF_F_MMAPABLE, Linux 5.5).
#pragma once

#include <linux/types.h>

#define UNWIND_POOL_BITS 20
#define UNWIND_POOL_BYTES (1u << UNWIND_POOL_BITS)
#define UNWIND_POOL_AT(position) ((position) & (UNWIND_POOL_BYTES - 1))
#define UNWIND_PAGE_BITS 16 /* of code, for one UnwindPage */
#define UNWIND_RULES 8192   /* different rules, of all modules together; rule 0 is UNWIND_NONE */
#define UNWIND_MAX_MAPPINGS 8192
#define UNWIND_MAX_PAGE_ROWS (1u << UNWIND_PAGE_BITS)

/* What to do at an address: UnwindRule.kind. */
#define UNWIND_NONE 0     /* nothing is known: stop */
#define UNWIND_SP 1       /* CFA = sp + cfa */
#define UNWIND_FP 2       /* CFA = fp + cfa */
#define UNWIND_FP_DEREF 3 /* CFA = *(fp + cfa): x86_64, functions that align their stack */
#define UNWIND_PLT 4      /* x86_64's PLT: CFA = sp + cfa, and 8 more from byte 11 of a stub's 16 on */
#define UNWIND_SIGNAL 5   /* the frame that the kernel built for a signal handler: all registers are in it */
#define UNWIND_END 6      /* the outermost frame: the return address is undefined */
#define UNWIND_ODD 7      /* a rule that this model can't express: stop, and count it */
#define UNWIND_SP_DEREF 8 /* CFA = *(sp + cfa) + 8: x86_64, OpenSSL's assembly */
#define UNWIND_R10 9      /* CFA = r10 + cfa: x86_64, where they begin to align it, and end; true of a leaf frame only */
#define UNWIND_KINDS 10

/* UnwindRule.flags */
#define UNWIND_RA_IN_LR 1  /* arm64, riscv64: the return address is still in x30, in ra; true of a leaf frame only */
#define UNWIND_RA_SIGNED 2 /* arm64: it was signed (PAC) */
#define UNWIND_RA_IN_DI 4  /* x86_64: vfork keeps it in rdi; true of a leaf frame only */
#define UNWIND_FP_BY_FP 8  /* x86_64, functions that align their stack: the caller's fp is at fp + UnwindRule.fp */
#define UNWIND_ADDED 16    /* no entry of the file's says it: entry points, PLTs, arm64's instructions */
#define UNWIND_GUESSED                                                                                                           \
    32 /* nobody says it: by the instructions there, else by frame pointers, and where they lead is looked at */
#define UNWIND_SWITCHES 128 /* likewise: to another stack, wherever that is; and where it leads astray this one began here */
#define UNWIND_TO_ROOT 64   /* with UNWIND_GUESSED: where the frame pointer is 0 the outermost frame was reached */

/// Registers are the machine's: sp is rsp, x31 or x2, fp is rbp, x29 or s0, lr is x30 or ra. Offsets are in units of 8 bytes.
struct UnwindRule {
    __u8 kind;  ///< UNWIND_...
    __u8 flags; ///< UNWIND_RA_...
    __s16 cfa;  ///< for kind, see there
    __s16 fp;   ///< the caller's fp is at CFA + fp; 0: it is still in the register (but see UNWIND_FP_BY_FP)
    __s16 ra;   ///< the return address is at CFA + ra; -1 on x86_64
};

/// A row: UNWIND_ROW_RULE(row) is true from UNWIND_ROW_LOW(row), the address modulo 64 KiB, to the next row. The first row of a
/// page is at 0.
#define UNWIND_ROW(low, rule) ((__u32)(low) << 16 | (__u32)(rule))
#define UNWIND_ROW_LOW(row) ((row) >> 16)
#define UNWIND_ROW_RULE(row) ((row)&0xffff)

/// A module's directory consists of these: one for each 64 KiB of its code.
struct UnwindPage {
    __u32 first; ///< position of the first row; all of them lie in one pool
    __u32 rows;  ///< 0: nothing is known of this page
};

/* How code in a mapping is unwound: UnwindMapping.kind. */
#define UNWIND_BY_FP 0    /* as UNWIND_GUESSED, UNWIND_TO_ROOT: code without tables (JIT) */
#define UNWIND_BY_TABLE 1 /* the rows of a table */
#define UNWIND_BY_NONE 2  /* neither: stop */

/// An executable mapping of a process. Those of one process lie behind each other, ascending and without overlap, in one pool.
struct UnwindMapping {
    __u64 start,      ///< address of the first byte
        end;          ///< address behind the last byte
    __u64 bias;       ///< pc - bias is the offset from the beginning of the directory's first page
    __u32 pages;      ///< position of the UnwindPages; one pool holds them all
    __u16 page_count; ///< beyond it nothing is known
    __u16 kind;       ///< UNWIND_BY_...
};

/// The value in unwind_processes; the key is the pid (u32) as records carry it.
struct UnwindProcess {
    __u32 mappings; ///< position of the UnwindMappings
    __u32 count;    ///< of them; at most UNWIND_MAX_MAPPINGS
    __u64 since_ns; ///< CLOCK_MONOTONIC: when these mappings were told; or one of UNWIND_ALWAYS_
    __u32 edition;  ///< how often room had been given away again by then: what was remembered before of tables may be of others
    __u32 unused;   ///< 0
};

/// A thread's registers where a walk begins, or goes on: the first fields of the walk's state, and what a copy of a stack comes
/// with.
struct UnwindRegisters {
    __u64 pc;      ///< to look up: of a return address the byte before it
    __u64 address; ///< to record: the return address, perhaps with UNWIND_EXACT_PC
    __u64 sp,      ///< the stack pointer in this frame
        fp;        ///< the frame pointer in this frame
    __u64 lr;      ///< the link register, x86_64's r10: the frame's own (leaf, or what a signal interrupted); else 0
    __u64 di;      ///< x86_64's rdi, likewise
    __u64 code;    ///< x86_64's r13 where the thread was interrupted in its own code: an interpreter's place in its code; else 0
};

/* Why a walk ended. */
#define UNWIND_ENDED_ROOT 0       /* the outermost frame was reached */
#define UNWIND_ENDED_NO_PROCESS 1 /* nothing is known of the process (yet): frame pointers were followed */
#define UNWIND_ENDED_NO_MAPPING 2 /* an address outside of all known code */
#define UNWIND_ENDED_NO_TABLE 3   /* the mapping or page has no rows, nor frame pointers that lead on */
#define UNWIND_ENDED_NO_RULE 4    /* code that no FDE covers, nor frame pointers that lead on */
#define UNWIND_ENDED_ODD 5        /* a rule that the model can't express */
#define UNWIND_ENDED_UNREADABLE 6 /* the stack's memory couldn't be read */
#define UNWIND_ENDED_STUCK 7      /* the next frame would not be further up the stack, or its address is 0 where it can't be */
#define UNWIND_ENDED_DEPTH 8      /* the limit of frames */
#define UNWIND_ENDED_NO_REGS 9    /* the thread's user registers couldn't be had */
#define UNWIND_ENDED_FROZEN 10    /* a virtual thread's callers lie in Java's heap (said by user space) */
#define UNWIND_ENDINGS 11
#define UNWIND_TABLES 0x100 /* beside one of these: the stack was walked by tables; without it by bpf_get_stack */
#define UNWIND_COPIED 0x200 /* beside one of these: the record goes on with UnwindRegisters and the stack's bytes */

/* Where a walk ends for want of news of the process, its stack is copied, for user space to walk when the news is there. */
#define UNWIND_COPY_PAGES 4
#define UNWIND_COPY_PAGE 4096              /* read at once, from one multiple of it to the next: the next one may not be there */
#define UNWIND_COPY_YOUNG_NS 1000000000ull /* what was told of a process is taken as out of date for so long */

/// UnwindProcess::since_ns: it never counts as out of date, and stacks that come to unknown code are always copied; all are.
#define UNWIND_ALWAYS_YOUNG 0x7fffffffffffffffull
#define UNWIND_ALWAYS_COPIED 0x7ffffffffffffffeull

/// Set in an address of a stack that is exact, although it isn't the leaf: what a signal interrupted. Without it, an address
/// above the leaf is a return address, and the call lies before it.
#define UNWIND_EXACT_PC (1ull << 63)
