// The stage of the profile program that counts: whether a sample's stacks were sent before, and if so one more of them. Emitted
// into profile_dsl.cpp's program; stack_counting.h is what user space makes of it.
#pragma once

#include <optional>

#include "asm/builder.h"
#include "programs/profile/stack_counting.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

class StackCounting {
  public:
    /// Declares the map: profile_stacks.
    StackCounting(Builder &b, const StackCountingOptions &options);

    /// Behind the capture of the stacks. In: r8 the scratch (a ProfileRecord, its frames behind it), r9 bytes of frames, `zero` a
    /// u32 on the stack that is 0. Goes to `counted` when the sample is in a count; else ProfileRecord::key is set, and the
    /// record has to be sent. Keeps r7, r8, r9; r0 to r6 are gone.
    void count(Code &f, const Slot &zero, Label counted);
    /// Behind the sending: r0 is 0 when the ring took the record. r0 is kept, r1 is gone.
    void sent(Code &f);

  private:
    void mix_in(Code &f) const;
    StackCountingOptions options_;
    MapRef stacks_;
    std::optional<Slot> entry_;
};

/// In a spec made of a unit with this stage: what a unit can't say of a map of maps. Nothing happens to a spec without it.
void complete_counting_maps(ObjectSpec &spec, uint32_t stacks);
/// What profile_stacks holds: for who makes them.
[[nodiscard]] MapSpec stack_counts_spec(uint32_t stacks);

} // namespace rawbpf::inline v0
