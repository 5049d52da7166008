// What the tests of `profile --off-cpu` look at: this same binary, started again with the environment saying what to wait for.
#pragma once

#include <string>
#include <vector>

namespace rawbpf::test {

/// The command that runs a workload (off_cpu_workload.cpp, without frame pointers): "naps" (twenty of 30 ms in oc_nap, called by
/// oc_naps), "on" (6,000 of 20 ms), "mutex" (a thread called taker waits a second or more for a mutex), "short"
/// (naps of 10 ms in oc_short_nap, two of 700 ms in oc_nap), "forks" (five children, and a child of each, nap for 50 ms once, and
/// end), "stuck" (naps until it is killed).
std::vector<std::string> off_cpu_workload(const std::string &what);

} // namespace rawbpf::test
