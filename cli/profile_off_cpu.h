// `rawbpf profile --off-cpu`: waits in place of samples.
#pragma once

#include "cli/common_options.h"
#include "programs/profile/off_cpu.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kOffCpuOption{
    .name = "off-cpu",
    .help = "measure waiting instead of running. Each time a thread blocks (it sleeps, or waits for a lock or a disk), rawbpf "
            "takes its stack and measures how long it waits; stacks are weighted by that time. If a thread is preempted although "
            "it could run, rawbpf only counts it",
    .part = Part::report};
inline constexpr Option kMinWaitOption{.name = "min-wait",
                                       .kind = OptionKind::seconds,
                                       .argument = "TIME",
                                       .help = "with --off-cpu: count shorter waits, but don't show them: 100us, 5ms",
                                       .part = Part::report};

} // namespace rawbpf::inline v0::cli
