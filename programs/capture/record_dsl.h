// Parts of a program that builds a record in the kernel: its head, the kernel stack, the user stack. The tool decides where the
// record is built (RecordPlace):
//
//      a CPU's scratch        profile: a perf event isn't interrupted by another on its CPU
//      one of four a CPU      custom: programs at uprobes are preempted, so each takes one that is free
//      a thread's slot        waits: a thread is on one CPU at a time; the slot stays until it comes back. And events that are
//                             counted: it is given back when the record is sent
//
//      r6  the context    r8  the place    r9  bytes of frames so far
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "asm/builder.h"
#include "programs/capture/record_head.h"
#include "programs/unwind/unwinder.h"

namespace rawbpf::inline v0 {

/// *counter += 1, by way of r1, for programs that nothing else interrupts which counts there.
void count_plainly(Code &f, Mem counter);
/// The same for programs that are preempted, or interrupted by one that counts the same.
void count_atomically(Code &f, Mem counter);

/// r7 = this CPU's counts: the element at 0 of `counts`; to `done` where there is none. `zero`: u32, is 0 then. r0 to r5 are
/// gone.
void find_counts(Code &f, const MapRef &counts, const Slot &zero, Label done);

/// A thread's slot: r0 = a new value of the hash `slots` at `key`, as the array `blank` has it at `zero` (u32, is 0). To `none`
/// where there is no room; with BPF_NOEXIST where there is one already, too. `flags`: of the update. r1 to r5 are gone.
void make_slot(Code &f, const MapRef &slots, const MapRef &blank, const Slot &key, const Slot &zero, uint64_t flags, Label none);

/// Values that programs take and give back: elements 0 to `count` - 1 of a map with a value each for each CPU.
struct SharedPlaces {
    size_t taken = 0; ///< in a value: a u64, 0 while it is free
    int count = 1;
    bool exchange = true; ///< atomic (5.12). Without it one that is interrupted between asking and taking shares its place
};
/// r0 = one that is free, and on to `taken`; goes on where there is none. `which`, a u32, is its number; to `none` where there is
/// no such element. r1 to r5 are gone.
void take_place(Code &f, const MapRef &map, const SharedPlaces &places, const Slot &which, Label none, Label taken);

/// In a program at a probe in user code that has 64 bytes of stack or more, functions that it calls among them, where the kernel
/// has one stack a CPU for such programs (Feature::private_stack): keeps it on the thread's own. r6 is the context; r0 to r5 are
/// gone.
void stay_on_own_stack(Code &f);

/// Where a record is made, all in bytes from r8 on, which points into a map's value.
struct RecordPlace {
    int32_t head = 0;                            ///< the RecordHead
    int32_t frames = 0;                          ///< the kernel's addresses, behind them the user's
    uint32_t room = 0;                           ///< so many fit: RAWBPF_STACK_FRAMES + user_frames(), at least
    int32_t walk = 0;                            ///< where user stacks are walked by tables: the UnwindScratch
    UnwindShape shape = UnwindScratch<>::kShape; ///< its

    /// A member of the head.
    [[nodiscard]] Mem at(size_t member) const { return r8 + runtime(head + static_cast<int64_t>(member)); }
};

/// Most frames of a user stack.
[[nodiscard]] uint32_t user_frames(const UnwindProgramOptions *unwind);

/// All of the head but the stacks' sizes. `pid` and `tid`: u32. r0 to r5 are gone.
void fill_head(Code &f, const RecordPlace &place, const Slot &pid, const Slot &tid);

/// r1 = whether user code ran, as the context's registers tell it: RAWBPF_MODE_USER if it did.
void load_mode(Code &f);

/// The kernel's stack, to the place's frames; none is asked for where the context's registers are of user code.
/// Out: r9 bytes, which the verifier knows to be RAWBPF_STACK_BYTES at the most; RecordHead::kernel_bytes. r0 to r5 are gone.
/// Not `wanted`: none.
void take_kernel_stack(Code &f, const RecordPlace &place, UnwindContext context, bool wanted = true);

/// How the user's stack is taken.
struct UserStack {
    UnwindContext context = UnwindContext::other;
    Slot pid;                     ///< u32: whose tables
    Unwinder *unwinder = nullptr; ///< nullptr: by frame pointers
    bool wanted = true;           ///< else: none
    /// Where stacks are copied: jumps when one isn't wanted (Unwinder::copy_stack()).
    std::function<void(Label)> room_for_copy = {};
};
/// Behind the kernel's. Out: r9 more by its bytes and a copy's; RecordHead::user_bytes and ending. r0 to r5 are gone.
/// Returns where it was walked by tables, if it was.
std::optional<Unwinder::WalkPlace> take_user_stack(Code &f, const RecordPlace &place, const UserStack &how);

} // namespace rawbpf::inline v0
