// SPDX-License-Identifier: MIT
// What every record with stacks begins with. Compiled by both: C with clang -target bpf, and C++.
//
//      +----------+------+------+-----+--------------+------------+--------+------+----------+------------------+----------------+
//      | t_ns u64 | pid  | tid  | cpu | kernel_bytes | user_bytes | ending | comm | the      | kernel addresses | user addresses |
//      |          |      |      |     |              |            |        |      | tool's   |                  |                |
//      +----------+------+------+-----+--------------+------------+--------+------+----------+------------------+----------------+
//      0          8      12     16    20             24           28       32..47 48
//
// Addresses have 8 bytes each, leaf first. Only what was captured is sent: of a stack with 3 kernel and 12 user frames 120 bytes.
// With UNWIND_COPIED in `ending` come UnwindRegisters and the stack's bytes from their sp on, to the record's end.
#pragma once

#include <linux/types.h>

/// The kernel's default limit of frames a stack (kernel.perf_event_max_stack): each of kernel and user. More are cut, and counted
/// as truncated; a walk by tables can have more.
#define RAWBPF_STACK_FRAMES 127
#define RAWBPF_STACK_BYTES (RAWBPF_STACK_FRAMES * 8)

/// Of RecordHead.ending: words of an interpreter's frames (programs/languages), and words of the running request's labels
/// (programs/labels), which end the record, in this order.
#define RAWBPF_LANGUAGE_WORDS(ending) ((ending) >> 16 & 0x1ff)
#define RAWBPF_LABEL_WORDS(ending) ((ending) >> 25)

#ifdef __cplusplus
namespace rawbpf::inline v0 {
#endif

/// The head of a record; host byte order.
struct RecordHead {
    __u64 t_ns;         ///< CLOCK_MONOTONIC
    __u32 pid;          ///< the process (tgid), as rawbpf's pid namespace numbers it
    __u32 tid;          ///< the thread
    __u32 cpu;          ///< on which it was captured
    __s32 kernel_bytes; ///< of addresses; negative: -errno; 0: none or not wanted
    __s32 user_bytes;   ///< the same for the user stack
    /// The user stack: 0: by frame pointers; else UNWIND_ENDED_... of runtime/unwind/layout.h, with UNWIND_TABLES, UNWIND_COPIED.
    __u32 ending;
    char comm[16]; ///< the thread's name, padded with NULs
};

#ifdef __cplusplus
static_assert(sizeof(RecordHead) == 48);
} // namespace rawbpf::inline v0
#endif
