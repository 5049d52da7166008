// `rawbpf profile --off-cpu`: in rawbpf-lab only.
#pragma once

#include "cli/common_options.h"
#include "programs/profile/off_cpu.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kOffCpuOption{
    .name = "off-cpu",
    .in_lab = true,
    .help = "measure waiting instead of running: each time a thread blocks (sleeps, waits for a lock or a disk) and leaves its "
            "CPU, with which stack, and for how long. Stacks are weighted by time. Threads that were preempted, and could have "
            "gone on, are only counted"};
inline constexpr Option kMinWaitOption{.name = "min-wait",
                                       .kind = Kind::seconds,
                                       .in_lab = true,
                                       .argument = "TIME",
                                       .help = "--off-cpu: count shorter waits, but don't show them: 100us, 5ms"};

using MakeOffCpu = std::unique_ptr<profile::OffCpu> (*)(uint64_t min_wait_ns);
/// nullptr in an executable that has no such thing (command_list.cpp).
extern const MakeOffCpu kMakeOffCpu;

} // namespace rawbpf::inline v0::cli
