// The kernel counts the threads that run or wait for a CPU, but has no list of them.
//
//      /proc/loadavg           1.20 0.80 0.50 3/456 14397        three of 456 threads, the one that asks among them
//      /proc/PID/stat          4711 (its name) R 1 4711 ...      the first thread's state
//      /proc/PID/task/*/stat                                     and the others'
//
// On a quiet machine the count says that there is nothing to look for. Else /proc is gone through until so many are found, the
// youngest processes first, and the threads beside the first only where the first ones weren't all of them. proc(5).
#include "runtime/sys/runnable.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::sys {

// "1.20 0.80 0.50 3/456 14397": three of 456 threads.
std::optional<uint64_t> runnable_threads(std::string_view loadavg) {
    for (int field = 0; field < 3; ++field) {
        const size_t space = loadavg.find(' ');
        if (space == std::string_view::npos) return std::nullopt;
        loadavg.remove_prefix(space + 1);
    }
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(loadavg.data(), loadavg.data() + loadavg.size(), value);
    if (error != std::errc() || end == loadavg.data() + loadavg.size() || *end != '/') return std::nullopt;
    return value;
}

// "4711 (its name) R 1 4711 ...": a name may have anything in it, so fields are counted from the last bracket on. The state is
// the third, the number of threads the twentieth.
std::optional<TaskState> task_state(std::string_view stat) {
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string_view::npos || stat.size() < name_end + 3 || stat[name_end + 1] != ' ') return std::nullopt;
    TaskState out;
    out.state = stat[name_end + 2];
    stat.remove_prefix(name_end + 2);
    for (int field = 3; field < 20; ++field) {
        const size_t space = stat.find(' ');
        if (space == std::string_view::npos) return std::nullopt;
        stat.remove_prefix(space + 1);
    }
    const auto [end, error] = std::from_chars(stat.data(), stat.data() + stat.size(), out.threads);
    if (error != std::errc()) return std::nullopt;
    return out;
}

std::vector<int> runnable_processes(uint64_t until_ns) {
    std::vector<int> out;
    const std::optional<uint64_t> running = runnable_threads(first_line("/proc/loadavg"));
    if (running && *running <= 1) return out; // ourselves
    const uint64_t wanted = running ? *running - 1 : UINT64_MAX;
    const auto entries = list_directory("/proc");
    if (!entries) return out;
    const auto number = [](const std::string &name) {
        int value = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
        return error == std::errc() && end == name.data() + name.size() ? value : -1;
    };
    uint64_t found = 0;
    std::vector<int> others; // of several threads, the first of which sleeps
    for (auto entry = entries->rbegin(); entry != entries->rend() && found < wanted && monotonic_ns() < until_ns; ++entry) {
        const int pid = number(*entry);
        if (pid <= 0 || pid == own_pid()) continue;
        const auto state = task_state(first_line(format("/proc/{}/stat", pid)));
        if (!state) continue;
        if (state->state == 'R') {
            out.push_back(pid);
            ++found;
        } else if (state->threads > 1) {
            others.push_back(pid);
        }
    }
    for (const int pid : others) {
        if (found >= wanted || monotonic_ns() >= until_ns) break;
        const auto threads = list_directory(format("/proc/{}/task", pid));
        if (!threads) continue;
        const bool runs = std::any_of(threads->begin(), threads->end(), [&](const std::string &thread) {
            const auto state = task_state(first_line(format("/proc/{}/task/{}/stat", pid, thread)));
            return state && state->state == 'R';
        });
        if (!runs) continue;
        out.push_back(pid);
        ++found;
    }
    return out;
}

} // namespace rawbpf::inline v0::sys
