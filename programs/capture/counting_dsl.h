// The stage of a program that counts: whether a record's stacks were sent before, and if so one more of them. Emitted into the
// programs of profile_dsl.cpp, and of a trace; programs/session/stack_counting.h is what user space makes of it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "asm/builder.h"
#include "programs/capture/counting.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Where the stage finds in a record what tells one kind from another; all in bytes from r8 on.
struct CountedRecord {
    struct Word {
        int32_t at = 0;
        uint32_t size = 8; ///< 4 or 8
    };
    struct Frames {
        int32_t at = 0;
        uint32_t most = 0;                      ///< there is room for so many
        std::function<void(Code &)> load_bytes; ///< r1 = how many bytes there are; may use r2
    };
    int32_t key = 0;             ///< u64, aligned: the stage says it there
    std::optional<Word> unknown; ///< a record that has one of these bits isn't counted: what its frames are isn't known yet
    uint32_t unknown_bits = 0;   ///< of `unknown`, which has 4 bytes
    std::vector<Word> words;     ///< aligned
    std::vector<Frames> frames;
};

class StackCounting {
  public:
    /// Declares the map: counted_stacks.
    StackCounting(Builder &b, const StackCountingOptions &options);

    /// Behind the capture of the stacks. In: r8 the record (in a map's value), `zero` a u32 on the stack that is 0. Goes to
    /// `counted` when the sample is in a count; else the record's key is set, and it has to be sent. Keeps r7, r8, r9; r0 to r6
    /// are gone.
    void count(Code &f, const Slot &zero, const CountedRecord &record, Label counted);
    /// r4 = a key of these words, 8 bytes each, for a record that isn't counted. r0 to r5 are gone.
    void mix(Code &f, const std::vector<Mem> &words) const;
    /// Behind the sending: r0 is 0 when the ring took the record. r0 is kept, r1 is gone.
    void sent(Code &f);

  private:
    void mix_frames(Code &f, const CountedRecord::Frames &frames) const;
    StackCountingOptions options_;
    MapRef stacks_;
    std::optional<Slot> entry_, hashing_;
};

/// In a spec made of a unit with this stage: what a unit can't say of a map of maps. Nothing happens to a spec without it.
void complete_counting_maps(ObjectSpec &spec, uint32_t stacks);
/// What counted_stacks holds: for who makes them.
[[nodiscard]] MapSpec stack_counts_spec(uint32_t stacks);

} // namespace rawbpf::inline v0
