// The program, loaded: with what this kernel takes of what is wanted.
//
//      options --> program_options --> unwinding? counting? the kernel's page of probed instructions?
//                                          |  what the kernel lacks is seen by trying, and left out with a word
//                                          v
//                                      object, and what the program was made with
#pragma once

#include <vector>

#include "programs/profile/setup.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"

namespace rawbpf::inline v0::profile {

struct Loaded {
    LoadedObject object;
    ProgramOptions program; ///< `unwind`: user stacks are walked by tables; `counting`: equal stacks are counted in the kernel
};

/// The maps of processes and of the cgroup are filled with those given; a command's process isn't there yet. Says in `outcome`
/// what was left out: among its warnings, and in its cost why nothing is counted.
[[nodiscard]] Result<Loaded> load_profile(const Setup &setup, Outcome &outcome);

/// Its rings, in our memory.
[[nodiscard]] Result<std::vector<RingBuffer>> open_rings(LoadedObject &object, const ProgramOptions &program);

} // namespace rawbpf::inline v0::profile
