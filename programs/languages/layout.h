// SPDX-License-Identifier: MIT
// What the program that walks an interpreter's frames and user space agree on.
//
// An interpreter keeps its functions' frames in a list of its own. Where it begins, and where in a frame the code, the caller and
// the position are, differs from build to build. User space learns that (cpython/learn.h) and writes it down for each process;
// the program follows it, whatever the language is:
//
//      thread pointer --start--> word --hop--> ... --> frame --previous--> frame --> ... --> 0
//      or an address                                     |  code, position, mark
//                                                        v
//                                                       code: name, file, first line, table of lines, owner
//
// A thread that runs several interpreters has a list for each. Their thread states are in lists of their own, which `others`
// leads to; those of this thread are walked, too, and behind each list's frames are two words more (LANGUAGE_IS_LIST).
//
// Frames that lie one behind the other have a stride in the place of `previous`, and the last hop's word, their holder, says
// where they end; the outermost of these is no function's. Or they are in rooms, the leaf's last, and each room's holder leads to
// its caller's; some kinds of such frames are no function's, and the outermost may be the program's itself.
//
// What it finds follows the stacks of the record, two words a frame, leaf first; RecordHead::ending says how many words. Where
// records have a fixed size it comes in front of the record, as one of its own (LanguageFrames).
//
//      +-- word 0: the code's number --+-- word 1: mark 8 bits | position - code 56 bits --+
//
// A number stands for a code object and for what it says (its address, name, file, line, table), so an address that is used again
// has another one. The first time that a number comes up, the program sends what it stands for, in a record of its own
// (LanguageCode): a process that has ended by the time that anybody looks still has its names. Where that record was lost on its
// way, user space takes the number out of language_codes and counts `again`: the next time that it comes up it is sent again.
#pragma once

#include <linux/types.h>

#include "programs/capture/record_head.h"

#define LANGUAGE_FRAMES 128        /* of a stack; deeper ones lose their outermost */
#define LANGUAGE_ROUNDS 1024       /* frames that are looked at for these, and rooms */
#define LANGUAGE_NEW_CODES 32      /* that are sent with one stack; others wait for the next */
#define LANGUAGE_HOPS 3            /* from the first word to the first frame */
#define LANGUAGE_OTHERS 3          /* lists of frames that a thread has beside its first */
#define LANGUAGE_NAME_HOPS 2       /* from a code object's word to its name */
#define LANGUAGE_OWNER_HOPS 4      /* to its owner's name */
#define LANGUAGE_WINDOW 128        /* bytes of a frame that are looked at */
#define LANGUAGE_NEIGHBOURS 512    /* bytes of frames that are read at once, where these lie close to each other */
#define LANGUAGE_CODE_BYTES 256    /* of a code object */
#define LANGUAGE_TEXT_BYTES 256    /* of a name or a file's path, with the object's head */
#define LANGUAGE_TABLE_BYTES 16384 /* of a table of lines, with its index */
#define LANGUAGE_INDEX_BYTES 1248  /* of that */
#define LANGUAGE_TEXT_HEAD 32      /* of a text's object, where the characters are elsewhere */

/* LanguageProcess.flags */
#define LANGUAGE_LEARN 1       /* nothing is known of its build yet: only the thread pointer is sent */
#define LANGUAGE_BY_THREAD 2   /* `start` counts from the thread pointer; else it is an address */
#define LANGUAGE_COPIED 4      /* code objects are copied: where they are doesn't tell them apart */
#define LANGUAGE_OWNER 8       /* a code object has an owner, as a class is, with a name */
#define LANGUAGE_LINES 16      /* a frame's position points at what has the line's number; the word has that number */
#define LANGUAGE_BASE 32       /* positions count from the word at `base` in the code object; else from the object */
#define LANGUAGE_MARK_FAR 64   /* `mark` is where in a frame the address of the mark's byte is */
#define LANGUAGE_NEAR 128      /* a frame's caller mostly lies close in front of it */
#define LANGUAGE_SEVERAL 256   /* threads of this process may have several lists of frames: `others`; these frames are linked */
#define LANGUAGE_ROOMS 512     /* frames lie in rooms, the leaf's last; the last hop's word is the holder of the leaf's room */
#define LANGUAGE_CALLERS 1024  /* a frame has its caller's position, and with it that one's line and file; the leaf's is apart */
#define LANGUAGE_CODE_HOP 2048 /* what `code` points to has the code object's address, at `code_hop` */
#define LANGUAGE_OWNER_TABLE 4096   /* where the owner's name is, depends on its table's size: `owner_table` */
#define LANGUAGE_THREAD_COPIES 8192 /* a thread may run a copy of its own of a code's instructions: `copies`, `copy` */

/* LanguageProcess.flags, and then RecordHead.ending: how its frames belong to the native ones isn't proven yet, so such stacks
   are sent each time and not counted: what is made of one now may differ from what is made of its like later. */
#define LANGUAGE_UNPROVEN 0x4000

/* LanguageProcess.tables: what the table of lines is. */
#define LANGUAGE_TABLE_OBJECT 0  /* an object with its length at `table_head` and its bytes 16 behind that */
#define LANGUAGE_TABLE_NONE 1    /* there is none; its address tells code objects apart, nevertheless */
#define LANGUAGE_TABLE_ENTRIES 2 /* entries of one size, whose number the code object has, and an index */

/* LanguageProcess.kinds: what the frames of a kind are. */
#define LANGUAGE_KIND_PASSED 0   /* a part of their function, as a loop is */
#define LANGUAGE_KIND_FUNCTION 1 /* a function's, whose code is at `code` */
#define LANGUAGE_KIND_OTHER 2    /* likewise, at `code_other`; if that is 0, they are passed */
#define LANGUAGE_KIND_NONE 3     /* no function's, but they may end a group */
#define LANGUAGE_KIND_ROOT 4     /* the outermost is the program's, whose code is at `root`; others are passed */
#define LANGUAGE_KIND_BITS 4     /* of `kinds`, and of the mark's byte that say which kind it is */
#define LANGUAGE_MARK_ZERO 0x20  /* of a mark where there are kinds: the word at `mark_zero` is 0 */
#define LANGUAGE_MARK_ROOM 0x10  /* likewise: it is the first of its room that is listed */

/* RecordHead.user_bytes of the walk's own records, which no tool's record has there; RecordHead.ending says which it is. */
#define LANGUAGE_RECORD (-0x4c616e67)
#define LANGUAGE_IS_CODE 1   /* LanguageCode */
#define LANGUAGE_IS_FRAMES 2 /* LanguageFrames */

/* Of word 1. */
#define LANGUAGE_MARK(word) ((word) >> 56)
#define LANGUAGE_POSITION_MASK 0x00ffffffffffffffull
#define LANGUAGE_MARKS 0x7f     /* what a frame's own mark may be, whatever its byte holds: others are rawbpf's */
#define LANGUAGE_IS_THREAD 0xff /* a mark: word 0 is the thread pointer, and there are no frames */
#define LANGUAGE_IS_LIST                                                                                                         \
    0xfe /* a mark: a list ends here; word 0 is the last word's holder, or, behind one hop, its last frame's address */

#ifdef __cplusplus
namespace rawbpf::inline v0 {
#endif

/// How the frames of a process are found; a value of the map language_processes, whose key is its number (u32).
struct LanguageProcess {
    __u64 start;              ///< bytes from the thread pointer to the first word, or its address
    __u64 others;             ///< where the first of the lists of thread states is; 0: unknown
    __u64 none;               ///< an address that stands for no code: a frame between two groups; 0: there are no such
    __u64 key;                ///< the address of a number, of 4 bytes: 16 bytes each are added to `start`; 0: there is none
    __u64 kinds;              ///< LANGUAGE_KIND_..., by the low bits of the mark's byte; 0: all frames are functions'
    __u32 flags;              ///< LANGUAGE_LEARN, LANGUAGE_BY_THREAD ...
    __u32 hops;               ///< of `hop`
    __u32 hop[LANGUAGE_HOPS]; ///< each: bytes from where a word points to the next word
    __u32 window;             ///< bytes of a frame that hold what is wanted, 1 to LANGUAGE_WINDOW - 1
    __u32 code_bytes;         ///< of a code object, likewise, 1 to LANGUAGE_CODE_BYTES - 1
    __u16 code, previous, position, mark; ///< where in a frame; below LANGUAGE_WINDOW; `mark` is a byte, the others 8
    __u16 name, file, line, table;        ///< where in a code object; below LANGUAGE_CODE_BYTES; `line` has 4 bytes, the others 8
    __u32 code_short;                     ///< bytes of a code object of another kind, which has no file or lines; 0: it is none
    __u32 kind_mask, kind_value; ///< what `code` points to is whole if its 4 bytes at `kind_at`, masked, are this; 0: all are
    __u32 text_far;              ///< a text with one of these bits in its first 4 bytes: its word at 24 points at the characters
    __u32 list_mask, list_value; ///< what is in the place of the file's path is a list of texts, likewise; 0: it never is
    __u16 list_first;            ///< where in such a list the path is
    __u16 code_hop;              ///< where in what `code` points to the code object's address is (LANGUAGE_CODE_HOP)
    __u16 base;                  ///< where in a code object what positions count from is
    __u16 owner;                 ///< where in a code object its owner is
    __u16 owner_hops, owner_hop[LANGUAGE_OWNER_HOPS]; ///< from there to its name, each as `hop`
    __u16 name_hops, name_hop[LANGUAGE_NAME_HOPS];    ///< from the word at `name` to the name
    __u16 named, named_owner; ///< where in a code object: 4 bytes that say that the word at `name` is the name; then its owner
    __u32 named_mask;         ///< of these; 0: it never is. Its owner's hops begin behind those of the name
    __u16 owner_table, owner_size; ///< where in an owner its table's address is; in what its first word points at, its last place
    __u16 kind_at;                 ///< where in what `code` points to its kind is
    __u16 code_other;              ///< where in a frame the code is, of LANGUAGE_KIND_OTHER
    __u16 mark_mask, mark_zero;    ///< of marks where there are kinds; LANGUAGE_MARK_ZERO
    __u16 line_file;               ///< where in what a position points at the file's path is (LANGUAGE_CALLERS)
    __u16 leaf, root;            ///< in what the first word points at: the leaf's position, the program's code (LANGUAGE_CALLERS)
    __u16 room_top, room_next;   ///< in a room's holder: the number of the leaf-most frame, 4 bytes; the next holder
    __u16 line_of;               ///< where in what a position points at the line's number is, of 4 bytes
    __u16 stride;                ///< of frames that lie one behind the other; 0: they are linked
    __u16 room, room_words;      ///< where in their holder the address is from which their room begins, and its words
    __u16 entries, entry, index; ///< where in a code object: how many (4 bytes); bytes of each; where: the index's address
    __u16 table_head;            ///< where in a table that is an object its length is
    __u16 other_next, other_first;  ///< where in what has a list of thread states the next one is, and the list's first
    __u16 state_next, state_thread; ///< where in a thread state the next one is, and the thread: its pointer less `thread_less`
    __u16 thread_less;
    __u32 tables; ///< LANGUAGE_TABLE_...
    __u32 again;  ///< the same in all: what CPUs remember to have been sent isn't believed any more when it has changed
    __u16 copies; ///< where in a code object the address of their list is: how many there are, 8 bytes, and the address of each
    __u16 copy;   ///< where in a frame the number of its copy in that list is, 4 bytes; 0: its instructions are the object's own
    __u16 instructions; ///< bytes of a code object in front of its own
    __u16 unused[3];
};

/// A record: what a number stands for. The bytes of `table` that there are end it.
struct LanguageCode {
    struct RecordHead head;       ///< of LANGUAGE_RECORD, LANGUAGE_IS_CODE; no stacks
    __u64 id;                     ///< the number
    __u64 address;                ///< of the code object
    __u32 line;                   ///< the first one's number
    __u32 name_bytes, file_bytes; ///< that could be read of each text's object
    __u32 table_bytes;            ///< of the table; those that there are, at most LANGUAGE_TABLE_BYTES
    __u32 index_bytes;            ///< of those; they end it
    __u32 owner_bytes;            ///< as those of the other texts
    __u32 whole;                  ///< 0: it is of another kind, without file and lines
    __u32 unused;
    __u8 owner[LANGUAGE_TEXT_BYTES];  ///< the object of its owner's name
    __u8 name[LANGUAGE_TEXT_BYTES];   ///< the object of the function's name, from its first byte on
    __u8 file[LANGUAGE_TEXT_BYTES];   ///< likewise, of the source file's path
    __u8 table[LANGUAGE_TABLE_BYTES]; ///< the bytes that say which position has which line
};

/// A record: the frames of the record that follows it from the same thread. The words that there are end it.
struct LanguageFrames {
    struct RecordHead head; ///< of LANGUAGE_RECORD, LANGUAGE_IS_FRAMES; no stacks
    __u64 number;           ///< of all words; that record has it, too
    __u64 words[2 * LANGUAGE_FRAMES];
};

#ifdef __cplusplus
static_assert(sizeof(LanguageProcess) == 208 && sizeof(LanguageCode) % 8 == 0);
static_assert((LANGUAGE_LEARN | LANGUAGE_BY_THREAD | LANGUAGE_COPIED | LANGUAGE_OWNER | LANGUAGE_LINES | LANGUAGE_BASE |
               LANGUAGE_MARK_FAR | LANGUAGE_NEAR | LANGUAGE_SEVERAL | LANGUAGE_ROOMS | LANGUAGE_CALLERS | LANGUAGE_CODE_HOP |
               LANGUAGE_OWNER_TABLE | LANGUAGE_THREAD_COPIES) == 0x3fff); // 14 flags fill 14 bits: none has another's
/// LANGUAGE_IS_...; 0: it is a tool's own record.
[[nodiscard]] inline __u32 language_record(const RecordHead &head) {
    return head.user_bytes == LANGUAGE_RECORD ? head.ending : 0;
}
} // namespace rawbpf::inline v0
#endif
