// What the profiler's tests profile: this same binary, started again with the environment saying what to do.
#pragma once

#include <string>
#include <vector>

namespace rawbpf::test {

/// The command that runs a workload: "split" (75 % hot_a, 25 % hot_b), "threads" (two of them in worker_body), "short" (twenty
/// processes of 20 ms in burst_body, each an exec of its own), "forks" (itself and a forked child), "system" (in system calls),
/// "jit" (in code that it made itself, named by /tmp/perf-PID.map), "crumbs" (children that work for 2 ms each in crumb_body, so
/// many that it is `milliseconds` together), "naps" (100 threads that work three times for 2 ms in crumb_body, and sleep for a
/// quarter of `milliseconds` before each), "faults" (touches `milliseconds` pages for the first time, in fault_body), "sleeps"
/// (for 5 ms, `milliseconds` times, called by sleep_caller), "calls" (getpriority(2), `milliseconds` times, called by
/// call_caller), "orphan" (a second thread and a child without a parent, in worker_body, after the first thread's end).
/// `milliseconds`: how long.
std::vector<std::string> workload(const std::string &what, int milliseconds);

} // namespace rawbpf::test
