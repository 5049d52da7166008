// Which threads run at this moment, and which process is whose child.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace rawbpf::inline v0::sys {

/// Processes of which a thread runs or waits for a CPU in this moment, without this one: what a clock's next ticks will find.
/// Looked for until `until_ns` (CLOCK_MONOTONIC), so on a machine of many threads some may be missing.
[[nodiscard]] std::vector<int> runnable_processes(uint64_t until_ns);
/// What a line of /proc/PID/stat says. PURE. nullopt: it is no such line.
struct TaskState {
    char state = 0; ///< R: it runs or waits for a CPU
    int parent = 0;
    uint64_t threads = 0;
};
[[nodiscard]] std::optional<TaskState> task_state(std::string_view stat);
/// The children of these processes that live in this moment, and theirs, each once; without the given ones.
[[nodiscard]] std::vector<int> descendants(const std::vector<int> &pids);
/// Of pairs of a process and its parent. PURE.
[[nodiscard]] std::vector<int> descendants(const std::vector<int> &pids, const std::vector<std::pair<int, int>> &parents);
/// How many threads the machine has; 0 where /proc doesn't say.
[[nodiscard]] uint64_t threads_of_machine();
/// How many threads of the machine run or wait for a CPU, as /proc/loadavg says it. PURE. nullopt: it is no such line.
[[nodiscard]] std::optional<uint64_t> runnable_threads(std::string_view loadavg);

} // namespace rawbpf::inline v0::sys
