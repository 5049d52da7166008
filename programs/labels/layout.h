// What the program that reads a thread's context, or a goroutine's labels, and user space agree on.
//
// A thread's context (OpenTelemetry's OTEP 4947) is a record in its memory that a variable of the thread points at:
//
//      otel_thread_ctx_v1 --> | trace id 16 | span id 8 | valid u8 | flags u8 | bytes of attributes u16 | attributes ... |
//                                                                                                        key u8, length u8, text
//
// Where the variable lies, user space finds out (variable.h) and writes it down for each process. The record follows the stacks
// and an interpreter's frames, as it is, in words; RAWBPF_LABEL_WORDS says how many. Of a record that ends within a word, what
// follows is 0.
//
// Of a goroutine the program makes such a record itself: the goroutine's number in place of the trace's id, LABEL_GOROUTINE as
// its valid byte, and of its labels those that somebody asks for, each with the number that the map label_keys has for its key.
#pragma once

#include <linux/types.h>

#define LABEL_HEAD_BYTES 28  /* of a record, before the attributes */
#define LABEL_VALID_AT 24    /* the byte that is 1 while a record is whole */
#define LABEL_GOROUTINE 2    /* the same byte of a goroutine's record */
#define LABEL_SIZE_AT 26     /* the attributes' bytes */
#define LABEL_MOST_BYTES 640 /* of a record; what the specification recommends at most. Of a larger one the rest is left out */
#define LABEL_MOST_WORDS (LABEL_MOST_BYTES / 8)
#define LABEL_ROOM_WORDS (LABEL_MOST_WORDS + 1) /* for the program: the verifier takes one more to be reachable */
#define LABEL_KEY_BYTES 64   /* of a key in label_keys, with a zero behind it: longer ones aren't found in goroutines */
#define LABEL_TEXT_BYTES 128 /* of a goroutine's label that are sent */
#define LABEL_MOST_SEEN 16   /* labels of a goroutine that are looked at; of a map as many full or empty places twice */

#ifdef __cplusplus
namespace rawbpf::inline v0 {
#endif

/// Where the variable of a process's threads is; a value of the map label_processes, whose key is its number (u32).
struct LabelProcess {
    __u64 offset;    ///< from the thread's pointer; with a module from where its block begins
    __u64 module;    ///< by its number the thread's list of blocks (dtv) has where the block is; 0: it has a fixed place
    __u32 go_m;      ///< of a Go program, whose variable is g (go_runtime.h): how far in g its m is,
    __u32 go_curg;   ///< how far in that the goroutine; 0: it is no Go program,
    __u32 go_number; ///< how far in the goroutine its number is; 0: not known,
    __u32 go_labels; ///< and its labels; 0: it never has any
};
/// A key that is asked for; a key of the map label_keys, whose value is its number (u32), below 256.
struct LabelKey {
    char text[LABEL_KEY_BYTES]; ///< with zeros behind it
};

#ifdef __cplusplus
} // namespace rawbpf::inline v0
#endif
