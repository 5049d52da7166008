// Emits the walk along an interpreter's frames, behind a record's stacks: layout.h says where they are and what is sent.
//
//     LanguageWalk languages(b, kHostArch);     // declares language_processes, language_codes, language_state
//     ...                                       // the stacks are in the record, r9 bytes of them
//     languages.walk(f, place, how);            // r9 more by the frames; RecordHead::ending says how many words
//
// One round is one frame: two reads of user memory (the frame, its code object) and a look whether the code was sent before.
// Needs bpf_loop (5.17), ring buffers and the kernel's BTF (where a thread's pointer is).
#pragma once

#include <cstdint>

#include "asm/builder.h"
#include "programs/capture/record_dsl.h"
#include "programs/capture/rings_dsl.h"
#include "programs/languages/layout.h"
#include "programs/languages/thread_pointer_dsl.h"

namespace rawbpf::inline v0 {

class LanguageWalk {
  public:
    /// Declares the maps: language_processes, language_codes, language_state.
    explicit LanguageWalk(Builder &b, Arch arch = kHostArch);

    /// What a walk starts from.
    struct How {
        Slot pid;           ///< u32: key in language_processes
        Slot zero;          ///< u32, is 0
        const Rings *rings; ///< where codes go
        uint64_t most = 0;  ///< bytes that can be in front of the frames
    };
    /// Behind the frames that are there, and a copy. In: r8 the place, r9 bytes so far; RecordHead::ending of the user stack.
    /// Out: r9 more by the words' bytes, at most kMostBytes; RecordHead::ending with the number of words. r6, r7, r8 are kept;
    /// r0 to r5 are gone.
    void walk(Code &f, const RecordPlace &place, const How &how);

    /// Machines of which it is known where the kernel keeps a thread's pointer.
    [[nodiscard]] static constexpr bool knows(Arch arch) { return knows_thread_pointer(arch); }
    static constexpr uint32_t kMostWords = 2 * LANGUAGE_FRAMES;
    static constexpr uint32_t kMostBytes = kMostWords * 8;

  private:
    struct Emit;
    Arch arch_;
    MapRef processes_, codes_, state_;
};

} // namespace rawbpf::inline v0
