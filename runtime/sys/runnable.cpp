// The kernel counts the threads that run or wait for a CPU, but has no list of them.
//
//      /proc/loadavg           1.20 0.80 0.50 3/456 14397        three of 456 threads, the one that asks among them
//      /proc/PID/stat          4711 (its name) R 1 4711 ...      the first thread's state
//      /proc/PID/task/*/stat                                     and the others'
//
// On a quiet machine the count says that there is nothing to search. Otherwise /proc is searched until that many are found,
// the youngest processes first; other threads than a process's first one are examined only if the first threads weren't all.
// proc(5).
#include "runtime/sys/runnable.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

#include "runtime/base/format.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::sys {

namespace {

std::vector<int> all_processes() {
    std::vector<int> out;
    const auto entries = list_directory("/proc");
    if (!entries) return out;
    for (const std::string &name : *entries) {
        int pid = 0;
        if (parse_whole(name, pid) && pid > 0) out.push_back(pid);
    }
    return out;
}

} // namespace

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
// the third, the parent the fourth, the number of threads the twentieth.
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
        if (field == 3 && std::from_chars(stat.data(), stat.data() + stat.size(), out.parent).ec != std::errc())
            return std::nullopt;
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
    uint64_t found = 0;
    std::vector<int> others; // of several threads, the first of which sleeps
    const std::vector<int> pids = all_processes();
    for (auto at = pids.rbegin(); at != pids.rend() && found < wanted && monotonic_ns() < until_ns; ++at) {
        const int pid = *at;
        if (pid == own_pid()) continue;
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

// Each round finds the children of those found so far; a number stands for one process, so there are no more rounds than
// generations.
std::vector<int> descendants(const std::vector<int> &pids, const std::vector<std::pair<int, int>> &parents) {
    std::vector<int> out;
    const auto is_in = [](const std::vector<int> &list, int pid) {
        return std::find(list.begin(), list.end(), pid) != list.end();
    };
    for (size_t before = 1; before != 0;) {
        before = out.size();
        for (const auto &[pid, parent] : parents)
            if ((is_in(pids, parent) || is_in(out, parent)) && !is_in(pids, pid) && !is_in(out, pid)) out.push_back(pid);
        before = out.size() - before;
    }
    return out;
}

std::vector<int> descendants(const std::vector<int> &pids) {
    std::vector<std::pair<int, int>> parents;
    for (const int pid : all_processes())
        if (const auto state = task_state(first_line(format("/proc/{}/stat", pid)))) parents.emplace_back(pid, state->parent);
    return descendants(pids, parents);
}

// "1.20 0.80 0.50 3/456 14397": 456.
uint64_t threads_of_machine() {
    const std::string line = first_line("/proc/loadavg");
    const size_t slash = line.find('/');
    return slash == std::string::npos ? 0 : std::strtoull(line.c_str() + slash + 1, nullptr, 10);
}

} // namespace rawbpf::inline v0::sys
