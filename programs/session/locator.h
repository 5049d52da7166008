// A record's addresses, as numbers: both of its stacks become nodes of the stack tree.
//
//      addresses, or a copy of the stack --walk--> addresses --locate--> places --frames_to_keep--> nodes
//
// Where an address is has to be asked at once: its process may be gone a moment later. Its name can wait (kernel_names.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "programs/processes/following.h"
#include "programs/processes/stacks.h"

namespace rawbpf::inline v0::session {

/// Both stacks of a record, as a program has sent them.
struct SentStacks {
    processes::UserStack user;
    std::span<const uint64_t> kernel; ///< leaf first
};

/// The same as nodes of a stack tree.
struct LocatedStacks {
    uint32_t kernel = processes::kNone, user = processes::kNone;
    uint32_t user_frames = 0;              ///< that were worth keeping
    uint8_t ending = processes::kNoEnding; ///< UNWIND_ENDED_..., of a program that has tables
    bool unknown =
        false; ///< none of the user addresses is in a mapping that is known of: the process ended before it was looked at
};

/// How many of a user stack's frames (leaf first) are worth keeping, of a walk by frame pointers. Code without frame pointers
/// leaves anything in that register: a list's head, or its own address. The kernel follows it through the heap to the end of its
/// buffer: a hundred addresses that aren't code. The first of them, above the last frame that is code, shows where the walk went
/// astray, unless it is so low that nothing is ever mapped there: then it is the end of the chain. Where nothing is known to be
/// code (the process was gone before its maps were read), all is kept but repetitions at the end.
[[nodiscard]] size_t frames_to_keep(std::span<const processes::FrameLocation> user);

/// InternedSample::ending of a user stack that has frames, or not: what the program sent, where it has tables. Zero is of one
/// without, for the root, reached by tables, has UNWIND_TABLES beside it.
[[nodiscard]] constexpr uint8_t ending_of(uint32_t sent, bool has_frames) {
    return has_frames && sent != 0 ? static_cast<uint8_t>(sent) : processes::kNoEnding;
}

/// Whether the walk of a user stack was stopped at the most frames: what it says of the stack's end means nothing then. `ending`:
/// UNWIND_ENDED_... or kNoEnding; `kept` frames of it were worth keeping, and a walk by frame pointers gives at most `most`.
[[nodiscard]] bool is_cut(uint8_t ending, size_t kept, size_t most);

/// The most frames of a stack that the kernel walks (kernel.perf_event_max_stack), or `program`, if that asks for less.
[[nodiscard]] uint32_t most_frames(uint32_t program);

class Locator {
  public:
    /// All must outlive this.
    Locator(processes::ProcessTable &table, processes::Unwinding &unwinding, processes::StackTree &tree)
        : table_(table), unwinding_(unwinding), tree_(tree) {}

    /// The news up to the record's time must be in the process table, and no later (Following::apply). A stack that came with a
    /// copy must have been walked (Following::walk).
    [[nodiscard]] LocatedStacks locate(const SentStacks &sent);

  private:
    [[nodiscard]] uint32_t kernel_node(std::span<const uint64_t> frames);
    void locate_user(const processes::UserStack &user, LocatedStacks &out);

    processes::ProcessTable &table_;
    processes::Unwinding &unwinding_;
    processes::StackTree &tree_;
    std::vector<processes::FrameLocation> places_; // of one stack
};

} // namespace rawbpf::inline v0::session
