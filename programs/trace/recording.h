// A trace's chunks of a recording (programs/recording/chunks.h has the others):
//
//     16 settings   what was asked for, frames of a stack, title                 once, before all of these
//     17 enum       size, names with values                                  numbered in the order they come
//     18 site       a probe's place: names, types of its arguments           the same: all of them, before events
//     19 layout     the columns of a record                                  the same
//     20 constants  what the values of an argument are called                the same
//     21 form       site, call or return, layout, constants by column        the same
//     22 thread     pid, tid, comm                                           the same, anew after 28
//     23 text       bytes that a record has for a column                     the same, anew after 28
//     24 event      form, thread, time since the last, cpu, flags, values, copied bytes, stacks, functions
//     25 exec       time, thread, number before: a thread has begun another program
//     26 counts     how each place's firings were spent; who is still alive  once, at the end
//     27 Go type    site, address, name
//     28 forget     threads and texts begin anew (keeps the memory of both sides bounded)
//
// An event's values are what they differ by from those of the last event of that form. A system call with its path takes about 15
// bytes, its stacks two to six more.
#pragma once

#include <cstdint>
#include <string>

#include "programs/processes/source_lines.h"
#include "programs/trace/sink.h"
#include "programs/unwind/choice.h"

namespace rawbpf::inline v0::trace {

enum Chunk : uint8_t {
    kSettings = 16,
    kEnum,
    kSite,
    kLayout,
    kConstants,
    kForm,
    kThread,
    kText,
    kEvent,
    kExec,
    kCounts,
    kGoType,
    kForget
};

inline constexpr uint32_t kMostKept = 1 << 14; ///< threads, and texts
inline constexpr uint32_t kLongestText = 256;  ///< longer ones stand in their events

/// Bits of an event: what it has.
enum EventFlags : uint8_t { kHasUnreadable = 1, kHasDuration = 2, kHasFrame = 4, kHasFunctions = 8 };

/// What a recording says of itself.
struct Settings {
    bool graph = false, latency = false, count = false, calls = true, returns = false, stack = false; ///< see ViewOptions
    UnwindBy unwind = UnwindBy::automatic;
    uint32_t most_frames = 0; ///< of a stack that isn't walked by tables
    std::string title = {};   ///< of pictures
};

} // namespace rawbpf::inline v0::trace
