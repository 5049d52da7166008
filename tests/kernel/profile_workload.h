// What the profiler's tests profile: this same binary, started again with the environment saying what to do.
#pragma once

#include <string>
#include <vector>

namespace rawbpf::test {

/// The command that runs a workload: "split" (75 % hot_a, 25 % hot_b), "threads" (two of them in worker_body), "short" (twenty
/// processes of 20 ms in burst_body, each an exec of its own), "forks" (itself and a forked child), "system" (in system calls),
/// "jit" (in code that it made itself, named by /tmp/perf-PID.map). `milliseconds`: how long.
std::vector<std::string> workload(const std::string &what, int milliseconds);

} // namespace rawbpf::test
