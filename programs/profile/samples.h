// From a record of the ring to a sample whose stacks are numbers.
//
//      RawSample --walk--> by its copy, if it has one --> begun waits --> InternedSample
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "programs/processes/following.h"
#include "programs/processes/stacks.h"
#include "programs/profile/begun_waits.h"
#include "programs/profile/off_cpu.h"
#include "programs/profile/sample.h"
#include "programs/session/locator.h"

namespace rawbpf::inline v0::profile {

class Samples {
  public:
    /// `want_frames`: else samples have only sizes. All must outlive this.
    Samples(processes::Following &following, processes::StackTree &tree, bool want_frames)
        : following_(following), locator_(following.table(), following.unwinding(), tree), want_frames_(want_frames) {}

    /// Makes the frames of one that came with a copy of its stack. The news up to its time must have been applied. They are good
    /// until the next call.
    void walk(RawSample &sample);
    /// A wait that has only begun: its stack, made of a copy, is kept until the wait's own record comes.
    void keep_begun(const RawSample &sample);
    /// The sample of a whole wait gets the stack that was kept of it, if there is one; good until the next call.
    void take_begun(RawSample &sample, uint64_t left_ns);
    /// After walk(). The weight is left open.
    [[nodiscard]] processes::InternedSample intern(const RawSample &sample);

  private:
    [[nodiscard]] static processes::UserStack sent(const RawSample &sample) {
        return {sample.head.pid, sample.head.t_ns, sample.head.ending, sample.user,     sample.copy,
                sample.language, sample.taken_ns,  sample.made_here,   sample.functions};
    }
    static void take_stack(RawSample &sample, std::span<const uint64_t> frames, uint32_t ending,
                           std::span<const unwind::FrameFunction> functions);

    processes::Following &following_;
    session::Locator locator_;
    BegunWaits begun_;
    bool want_frames_;
};

} // namespace rawbpf::inline v0::profile
