// Emits the walk along an interpreter's frames, behind a record's stacks: layout.h says where they are and what is sent.
//
//     LanguageWalk languages(b);                // declares language_processes, language_codes, language_state
//     ...                                       // the stacks are in the record, r9 bytes of them
//     languages.walk(f, place, how);            // r9 more by the frames; RecordHead::ending says how many words
//
// Records of a fixed size have no room for them. There the frames go in front of the record, and it has their number:
//
//     languages.begin(f, apart);                // the walk; apart.number
//     languages.send(f, apart);                 // where the record will be sent, too
//     languages.end(f, apart);                  // on each way
//
// One round is one frame: two reads of user memory (the frame, its code object) and a look whether the code was sent before.
// Needs bpf_loop (5.17), ring buffers and the kernel's BTF (where a thread's pointer is).
#pragma once

#include <cstdint>
#include <functional>

#include "asm/builder.h"
#include "programs/capture/off_cpu_dsl.h"
#include "programs/capture/record_dsl.h"
#include "programs/capture/rings_dsl.h"
#include "programs/languages/layout.h"
#include "programs/languages/thread_pointer_dsl.h"

namespace rawbpf::inline v0 {

class LanguageWalk {
  public:
    /// Which programs walk.
    struct Programs {
        bool preempted = false; ///< another one may begin on the CPU in the middle of them, as at uprobes (needs 5.12)
        bool wakes = false;     ///< the walk's records wake who reads the ring, as the tool's own do
        Arch arch = kHostArch;
    };
    /// Declares the maps: language_processes, language_codes, language_state.
    LanguageWalk(Builder &b, const Programs &programs);
    explicit LanguageWalk(Builder &b) : LanguageWalk(b, Programs()) {}

    /// What a walk starts from.
    struct How {
        Slot pid;           ///< u32: key in language_processes
        Slot zero;          ///< u32, is 0
        Slot counts, state; ///< u64 each, free
        const Rings *rings; ///< where codes go
        uint64_t most = 0;  ///< bytes that can be in front of the frames
    };
    /// Behind the frames that are there, and a copy. In: r8 the place, r9 bytes so far; RecordHead::ending of the user stack.
    /// Out: r9 more by the words' bytes, at most kMostBytes; RecordHead::ending with the number of words. r7, r8 are kept; r0 to
    /// r6 are gone.
    void walk(Code &f, const RecordPlace &place, const How &how);
    /// The same in the tool's program at the scheduler's switch. This must outlive it.
    void join(OffCpuTool &tool);

    /// A walk whose frames are sent apart. All slots are u64 but for `pid` and `zero`, as in How, and `which`, a u32.
    struct Apart {
        Slot pid, zero;
        Slot tid;             ///< u64, whose first u32 is the thread's number
        Slot number;          ///< set: LanguageFrames::number; 0: there are no frames
        Slot which;           ///< set: for send() and end()
        Slot context, counts; ///< free
        Slot state;           ///< free, in begin() alone
        const Rings *rings;
    };
    /// Out: r6 to r9 are kept; r0 to r5 are gone.
    void begin(Code &f, const Apart &apart);
    /// r6 to r9 are kept; r0 to r5 are gone.
    void send(Code &f, const Apart &apart) const;
    /// Likewise.
    void end(Code &f, const Apart &apart) const;

    /// Machines of which it is known where the kernel keeps a thread's pointer.
    [[nodiscard]] static constexpr bool knows(Arch arch) { return knows_thread_pointer(arch); }
    static constexpr uint32_t kMostWords = 2 * LANGUAGE_FRAMES;
    static constexpr uint32_t kMostBytes = kMostWords * 8;

  private:
    void take_state(Code &f, const Slot &zero, Label none) const;
    void forget_codes(Code &f) const;
    void begin_codes(Code &f, const std::function<void()> &head) const;
    void list(Code &f, const Slot &pid, const Slot &state, const Rings &rings, Label listed);
    void find_state(Code &f, const Apart &apart, Label none) const;
    Programs programs_;
    bool numbers_ = false; ///< frames are sent apart
    MapRef processes_, codes_, state_;
};

} // namespace rawbpf::inline v0
