// Emits the walk: any program of ours can call it to get its user stack, in place of bpf_get_stack.
//
//     Unwinder unwinder(b, options);             // declares unwind_pools, unwind_rules, unwind_processes
//     Code &f = b.program("perf_event", "profile");
//     ...                                        // r6 context, r8 scratch (a map's value), r9 bytes of frames so far
//     unwinder.walk(f, place);                   // where in the scratch the state and the frames are
//     f.store<uint32_t>(user_bytes, r0);
//     ...
//     ObjectSpec spec = TRY(object_of(unit));
//     complete_unwind_maps(spec);                // what a unit can't say of maps of maps
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "asm/builder.h"
#include "programs/unwind/program.h"

namespace rawbpf::inline v0 {

/// What r6 points at.
enum class UnwindContext : uint8_t {
    perf_event, ///< struct bpf_perf_event_data
    registers,  ///< struct pt_regs: uprobes, kprobes
    other,      ///< no registers: tracepoints, fentry ...
};

class Unwinder {
  public:
    /// Declares the maps: unwind_pools, unwind_rules, unwind_processes.
    Unwinder(Builder &b, const UnwindProgramOptions &options);

    /// What a walk starts from, and where in the scratch its state and its frames are.
    struct WalkPlace {
        UnwindContext context = UnwindContext::other;
        Slot pid;           ///< u32: key in unwind_processes
        int32_t state = 0;  ///< where the UnwindScratch is, in bytes from r8; aligned to 8
        int32_t frames = 0; ///< where the frames begin, likewise
        uint32_t room = 0;  ///< frames that fit there: at least the kernel's that can be and max(depth, 127)
        UnwindShape shape = UnwindScratch<>::kShape; ///< its
    };
    /// The user stack of the current thread, behind what is there already.
    /// In: r6 the context, r8 the scratch (a pointer to a map's value, constant offset), r9 bytes of frames so far (bounded).
    /// Out: r0 bytes of user frames, or -errno; r9 more by these; UnwindState::ending. r6, r7, r8 are kept; r1 to r5 are gone.
    void walk(Code &f, const WalkPlace &place);
    /// After walk(): where that ended because nothing, or nothing recent, is known of the process, UnwindRegisters and up to
    /// UNWIND_COPY_PAGES of the stack are put behind the frames, and UNWIND_COPIED is set in UnwindState::ending. `room` emits
    /// what jumps to the label when a copy isn't wanted after all (r0 to r5 are free).
    /// In: r0, r8 and r9 as walk() left them. Out: r0 likewise, but 0 where the thread has no stack; r9 more by the copy's
    /// bytes. r6, r7, r8 are kept; r1 to r5 are gone.
    void copy_stack(Code &f, const WalkPlace &place, const std::function<void(Label)> &room) const;
    /// After walk(): goes on where copy_stack() would make a copy, and else jumps. r0 to r5 are gone.
    void jump_if_walked(Code &f, const WalkPlace &place, Label walked) const;
    /// Before walk(), where room for a copy has to be made first: goes on where the walk may end for want of news of the process,
    /// and else jumps. r0 to r5 are gone.
    void jump_if_known(Code &f, const Slot &pid, Label known) const;
    /// Bytes behind the frames that a copy may take.
    static constexpr uint32_t kCopyBytes = sizeof(UnwindRegisters) + UNWIND_COPY_PAGES * UNWIND_COPY_PAGE;

    /// Lets the verifier forget what it knows of a number, a multiple of 8, but that it is that and `most` at the most, by way of
    /// a place in a map's value. Wherever several ways meet with different numbers it would look at all that follows once for
    /// each.
    static void forget(Code &f, WritableReg number, Mem by, uint32_t most);

  private:
    struct Emit;
    Builder &b_;
    UnwindProgramOptions options_;
    MapRef pools_, rules_, processes_;
    const Code &round(const WalkPlace &place);
    std::optional<MapRef> state_;          // without bpf_loop
    std::map<UnwindShape, Code *> rounds_; // by the scratch's shape
    int walks_ = 0;
};

} // namespace rawbpf::inline v0
