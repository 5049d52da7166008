#include "programs/profile/samples.h"

#include <cstring>

namespace rawbpf::inline v0::profile {

void Samples::take_stack(RawSample &sample, std::span<const uint64_t> frames, uint32_t ending,
                         std::span<const unwind::FrameFunction> functions) {
    sample.user = frames;
    sample.head.user_bytes = static_cast<int32_t>(frames.size_bytes());
    sample.head.ending = ending;
    sample.made_here = true;
    sample.functions = functions;
}

void Samples::walk(RawSample &sample) {
    processes::UserStack stack = sent(sample);
    if (following_.walk(stack)) take_stack(sample, stack.frames, stack.ending, stack.functions);
}

void Samples::keep_begun(const RawSample &sample) {
    following_.sampled(sample.head.pid, sample.head.t_ns);
    begun_.keep(sample);
}

void Samples::take_begun(RawSample &sample, uint64_t left_ns) {
    if (const BegunWaits::Stack *begun = begun_.take(sample.head.tid, left_ns))
        take_stack(sample, begun->frames, begun->ending, begun->functions);
}

processes::InternedSample Samples::intern(const RawSample &sample) {
    const RecordHead &head = sample.head;
    processes::InternedSample out;
    out.t_ns = head.t_ns;
    out.pid = head.pid;
    out.tid = head.tid;
    out.cpu = head.cpu;
    out.kernel_bytes = head.kernel_bytes;
    out.user_bytes = head.user_bytes;
    std::memcpy(out.comm, head.comm, strnlen(head.comm, sizeof out.comm));
    if (head.user_bytes < 0) out.kernel_thread = following_.table().kernel_thread(head.pid, head.t_ns);
    if (!want_frames_ && !following_.unwinds()) return out;
    const session::LocatedStacks located = locator_.locate({sent(sample), sample.kernel});
    out.kernel = located.kernel;
    out.user = located.user;
    out.ending = located.ending;
    return out;
}

} // namespace rawbpf::inline v0::profile
