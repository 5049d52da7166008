// What the program that reads a thread's context and user space agree on.
//
// A thread's context (OpenTelemetry's OTEP 4947) is a record in its memory that a variable of the thread points at:
//
//      otel_thread_ctx_v1 --> | trace id 16 | span id 8 | valid u8 | flags u8 | bytes of attributes u16 | attributes ... |
//                                                                                                        key u8, length u8, text
//
// Where the variable lies, user space finds out (variable.h) and writes it down for each process. The record follows the stacks
// and an interpreter's frames, as it is, in words; RAWBPF_LABEL_WORDS says how many. Of a record that ends within a word, what
// follows is 0.
#pragma once

#include <linux/types.h>

#define LABEL_HEAD_BYTES 28  /* of a record, before the attributes */
#define LABEL_VALID_AT 24    /* the byte that is 1 while a record is whole */
#define LABEL_SIZE_AT 26     /* the attributes' bytes */
#define LABEL_MOST_BYTES 640 /* of a record; what the specification recommends at most. Of a larger one the rest is left out */
#define LABEL_MOST_WORDS (LABEL_MOST_BYTES / 8)
#define LABEL_ROOM_WORDS (LABEL_MOST_WORDS + 1) /* for the program: the verifier takes one more to be reachable */

#ifdef __cplusplus
namespace rawbpf::inline v0 {
#endif

/// Where the variable of a process's threads is; a value of the map label_processes, whose key is its number (u32).
struct LabelProcess {
    __u64 offset; ///< from the thread's pointer; with a module from where its block begins
    __u64 module; ///< by its number the thread's list of blocks (dtv) has where the block is; 0: it has a fixed place
};

#ifdef __cplusplus
} // namespace rawbpf::inline v0
#endif
