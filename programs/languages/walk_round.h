// What the walk keeps, and one frame of it. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>

#include "asm/builder.h"
#include "programs/capture/rings_dsl.h"
#include "programs/languages/layout.h"
#include "programs/languages/walk_dsl.h"

namespace rawbpf::inline v0 {

#define LANGUAGE_RECENT 128 // codes that this CPU has just seen, each at a place that its number says

// What a walk keeps: one a CPU, or one of some.
struct LanguageState {
    uint64_t taken;
    LanguageProcess process;
    uint64_t frame;       // next
    uint64_t id;          // of its code
    uint64_t holder, end; // of frames that lie one behind the other; of rooms, the next holder, and where the room begins
    uint64_t at, file;    // its position, and what that says of its file
    uint64_t root;        // the program's code
    uint32_t words, sent, pid, whole, named, fresh; // fresh: the next mark has LANGUAGE_MARK_ROOM
    uint64_t thread;                                // its pointer
    uint64_t first, other, other_state;             // the thread state that was walked first; where the search for others is
    uint64_t others[2 * LANGUAGE_OTHERS + 2];       // of each list that waits: its first frame, its holder
    uint32_t waiting, within;                       // lists; where in the window the frame is
    uint64_t window_at;                             // the address of the window's bytes; 0: it has one frame
    uint64_t window[(LANGUAGE_NEIGHBOURS + LANGUAGE_WINDOW) / 8 + 1]; // a word more, which the verifier takes to be reachable
    uint64_t object[LANGUAGE_CODE_BYTES / 8 + 1];                     // a code object, likewise
    uint32_t which, again;                                            // of the CPU's; LanguageProcess::again of `recent`
    LanguageFrames frames;
    uint64_t recent[LANGUAGE_RECENT]; // numbers; looking for one here costs a tenth of the map's lookup
    LanguageCode code;
};
static_assert(sizeof(LanguageFrames::words) == LanguageWalk::kMostBytes);

/// A place of the state in r6.
inline Mem language_state(size_t offset) { return r6 + runtime(static_cast<int64_t>(offset)); }
#define STATE(member) language_state(offsetof(LanguageState, member))

/// How a frame is walked.
struct LanguageRound {
    MapRef codes;       ///< language_codes
    const Rings *rings; ///< where codes go
    bool wakes;         ///< LanguageWalk::Programs
    bool numbers;       ///< LanguageFrames::number is wanted
};
/// The next list that waits becomes the one that is walked; jumps to `none` if there is none. r1 to r3 are gone.
void emit_next_list(Code &g, Label none);
/// What the state's `id` stands for, into a ring: the code object that was read, whose address is in r7. r0 = 0: it is sent. r1
/// to r9 are gone, but r6.
void emit_language_code(Code &g, const LanguageRound &how);
/// One frame, whose address is in r7; r6 the state. Breaks behind the last.
void emit_language_round(Code &g, const LanguageRound &how);

} // namespace rawbpf::inline v0
