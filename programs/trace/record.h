// What the programs send: a header, the values of the columns, and what was copied for them.
//
//      | Header, 64 bytes | value 0 | value 1 | ...  8 bytes each | blob 0 | blob 1 | ... | labels | stacks |
//
//      columns: the function's arguments, then what --show asks for; for a result one value more, the last
//      blob:    | s32 length, or a negative errno | bytes ... |    of fixed size, so that a record's size is known when it is
//               reserved
//      labels:  | bytes, u64 | record of programs/labels/layout.h ... |    of fixed size, too
//      stacks:  | StackHead | kMostFrames addresses of the kernel's | Layout::user_frames of the user's |
//      counted: | Header | key, 8 bytes | labels | stacks |     where equal stacks are counted, no values are asked for
//      copy:    behind the user's addresses that are there, of a process that nothing is known of yet (UNWIND_COPIED)
//
// An interpreter's frames (programs/languages) come in front of the record, as one of their own: StackHead has their number.
//
// All in the machine's byte order: this is memory shared with the kernel, not a file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "programs/trace/probe.h"
#include "programs/trace/value.h"

namespace rawbpf::inline v0::trace {

struct Header {
    uint64_t time = 0; ///< CLOCK_MONOTONIC, ns
    uint32_t tid = 0, pid = 0;
    uint32_t place = 0; ///< index among the places; of an exec: the number that the thread had before, on the machine
    uint32_t cpu = 0;
    uint32_t what = 0;       ///< What
    uint32_t unreadable = 0; ///< a bit for each column whose value couldn't be read (USDT arguments in memory)
    uint64_t duration = 0;   ///< ns since the call, where the kernel paired them (ProgramOptions::pair); else 0
    uint64_t frame = 0;      ///< a call that is paired in user space: where the stack ends, see Calls; else 0
    char comm[16] = {};
};
static_assert(sizeof(Header) == 64);

/// exec: a thread, and with it its process, has begun another program; a header, and no place.
enum What : uint32_t { call = 0, result = 1, exec = 2 };

/// The counters of a place, for each CPU; the ledger is made of them.
struct Counts {
    uint64_t fired = 0, filtered = 0, sampled_out = 0, lost = 0;
};

/// What is copied while the probe runs, for one column.
struct Blob {
    uint32_t column = 0;
    Show show = Show::text;
    uint16_t offset = 0;   ///< of the length, in the record
    uint16_t capacity = 0; ///< bytes behind it
};

struct OwnConstants; // described.h

/// One value of a record.
struct Column {
    Value value;
    std::string name;                                   ///< empty: an argument, whose name and type are the place's own
    int32_t blob = -1;                                  ///< in Layout::blobs
    std::shared_ptr<const OwnConstants> constants = {}; ///< of a recording: what its machine calls values; nullptr: nothing
};

inline constexpr uint16_t kSockaddrBytes = 28; // sockaddr_in6; longer ones (AF_UNIX) are cut: their path is capacity's
inline constexpr uint32_t kMostFrames = 64;    // of a stack, but of one that is walked by tables

/// What stands before the addresses of the stacks, which are innermost first.
struct StackHead {
    int32_t kernel_bytes = 0, user_bytes = 0; ///< of addresses; negative: -errno
    /// Why a walk by tables ended: UNWIND_ENDED_..., with UNWIND_TABLES if it was one, and UNWIND_COPIED if a copy follows.
    uint32_t ending = 0;
    uint32_t copied_to = 0; ///< where that ends, in bytes from the user's first address on
    uint64_t language = 0;  ///< LanguageFrames::number, of an interpreter's frames; 0: there are none
};

/// How a record of one kind of place looks.
struct Layout {
    std::vector<Column> columns;
    bool is_result = false; ///< one value more: what was returned
    uint32_t results = 0;   ///< of Go: so many columns, the last ones, are what was returned
    bool goroutine = false; ///< of Go: one value more, the last: the goroutine
    std::vector<Blob> blobs;
    uint32_t labels = 0; ///< offset of the running request's labels; 0: none
    uint32_t stack = 0;  ///< offset of the stacks; 0: none
    uint32_t user_frames = kMostFrames;
    uint32_t key = 0; ///< offset of a u64: further events like this one are counted under it, where it isn't 0; 0: none are
    uint32_t size = sizeof(Header);
    bool recorded = false; ///< on another machine, perhaps: columns have all that is known of their constants
    [[nodiscard]] uint32_t values() const {
        return static_cast<uint32_t>(columns.size()) + (is_result ? 1 : 0) + (goroutine ? 1 : 0);
    }
    [[nodiscard]] size_t arguments() const { return columns.size() - results; } ///< columns that aren't results
};

/// Where the kernel keeps a call until its return: one for each thread (or goroutine), place and depth of recursion.
struct OpenCall {
    uint64_t time = 0;
    uint64_t arguments[kRawArguments] = {};
};
struct CallKey {
    uint64_t who = 0;                ///< a thread's id, or a goroutine's address
    uint32_t process = 0, place = 0; ///< process: of a goroutine
};
struct OpenKey {
    CallKey call;
    uint32_t depth = 0, unused = 0;
};

} // namespace rawbpf::inline v0::trace
