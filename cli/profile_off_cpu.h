// `rawbpf profile --off-cpu`: in rawbpf-lab only.
#pragma once

#include "cli/common_options.h"
#include "programs/profile/off_cpu.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kOffCpuOption{
    .name = "off-cpu",
    .in_lab = true,
    .help =
        "not what runs but what waits: each time a thread leaves its CPU blocked (asleep, for a lock, for a disk), for how long, "
        "and with which stack; time is what counts. Threads that could have gone on (preempted) are only counted"};
inline constexpr Option kMinWaitOption{.name = "min-wait",
                                       .kind = Kind::seconds,
                                       .in_lab = true,
                                       .argument = "TIME",
                                       .help = "--off-cpu: shorter waits are counted, and not shown: 100us, 5ms"};

using MakeOffCpu = std::unique_ptr<profile::OffCpu> (*)(uint64_t min_wait_ns);
/// nullptr in an executable that has no such thing (command_list.cpp).
extern const MakeOffCpu kMakeOffCpu;

} // namespace rawbpf::inline v0::cli
