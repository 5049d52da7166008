// `rawbpf profile --off-cpu`: waits in place of samples.
#pragma once

#include "cli/common_options.h"
#include "programs/profile/off_cpu.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kOffCpuOption{
    .name = "off-cpu",
    .help = "measure waiting instead of running: each time a thread blocks (sleeps, waits for a lock or a disk) and leaves its "
            "CPU, with which stack, and for how long. Stacks are weighted by time. Threads that were preempted, and could have "
            "gone on, are only counted"};
inline constexpr Option kMinWaitOption{.name = "min-wait",
                                       .kind = Kind::seconds,
                                       .argument = "TIME",
                                       .help = "--off-cpu: count shorter waits, but don't show them: 100us, 5ms"};

} // namespace rawbpf::inline v0::cli
