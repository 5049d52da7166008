// Who runs in this moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rawbpf::inline v0::sys {

/// Processes of which a thread runs or waits for a CPU in this moment, without this one: what a clock's next ticks will find.
/// Looked for until `until_ns` (CLOCK_MONOTONIC), so on a machine of many threads some may be missing.
[[nodiscard]] std::vector<int> runnable_processes(uint64_t until_ns);
/// What a line of /proc/PID/stat says. PURE. nullopt: it is no such line.
struct TaskState {
    char state = 0; ///< R: it runs or waits for a CPU
    uint64_t threads = 0;
};
[[nodiscard]] std::optional<TaskState> task_state(std::string_view stat);
/// How many threads of the machine run or wait for a CPU, as /proc/loadavg says it. PURE. nullopt: it is no such line.
[[nodiscard]] std::optional<uint64_t> runnable_threads(std::string_view loadavg);

} // namespace rawbpf::inline v0::sys
