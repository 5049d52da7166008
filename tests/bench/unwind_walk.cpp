// What a sample costs in BPF, by the kernel's own statistics, with the user stack walked by tables and by frame pointers; and
// what the verifier takes to let either form of the walk in.
//
//     unwind-walk [MILLISECONDS]     a line each: what, ns a sample (the best of three rounds), mean number of user frames
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "tests/kernel/unwind_run.h"

using namespace rawbpf;

int main(int count, char **arguments) {
    const int milliseconds = count > 1 ? std::atoi(arguments[1]) : 2000;
    struct Row {
        const char *name, *workload;
        bool tables, bpf_loop;
        uint32_t depth = 127;
    };
    constexpr Row kRows[] = {
        {"one frame of twenty, tables, bpf_loop", "twenty", true, true, 1},
        {"twenty frames, tables, bpf_loop", "twenty", true, true},
        {"twenty frames, tables, loop", "twenty", true, false},
        {"twenty frames with frame pointers, tables, bpf_loop", "framed", true, true},
        {"twenty frames with frame pointers, bpf_get_stack", "framed", false, true},
    };
    constexpr int kRounds = 3;
    double best[std::size(kRows)] = {}, frames[std::size(kRows)] = {};
    for (int round = 0; round < kRounds; ++round) {
        for (size_t i = 0; i < std::size(kRows); ++i) {
            const Row &row = kRows[i];
            test::UnwindRun how;
            how.tables = row.tables;
            how.bpf_loop = row.bpf_loop;
            how.depth = row.depth;
            const test::UnwindSeen seen = test::see_workload(row.workload, milliseconds / kRounds, how);
            if (!seen.why.empty() || seen.stacks.empty()) {
                std::printf("%s: %s\n", row.name, seen.why.empty() ? "no samples" : seen.why.c_str());
                return 1;
            }
            size_t sum = 0;
            for (const test::UnwoundStack &stack : seen.stacks) sum += stack.frames.size();
            const double cost = static_cast<double>(seen.cost.ns) / static_cast<double>(seen.cost.runs);
            if (round == 0 || cost < best[i]) best[i] = cost;
            frames[i] = static_cast<double>(sum) / static_cast<double>(seen.stacks.size());
        }
    }
    for (size_t i = 0; i < std::size(kRows); ++i)
        std::printf("%s: %.0f ns a sample, %.1f user frames\n", kRows[i].name, best[i], frames[i]);
    return 0;
}
