// What a sample costs in BPF, by the kernel's own statistics, with the user stack walked by tables and by frame pointers; and
// what the verifier takes to let either form of the walk in.
//
//     unwind-walk [MILLISECONDS]     a line each: what, ns a sample, mean number of user frames
#include <cstdio>
#include <cstdlib>

#include "tests/kernel/unwind_run.h"

using namespace rawbpf;

int main(int count, char **arguments) {
    const int milliseconds = count > 1 ? std::atoi(arguments[1]) : 2000;
    struct Row {
        const char *name, *workload;
        bool tables, bpf_loop;
    };
    constexpr Row kRows[] = {
        {"twenty frames, tables, bpf_loop", "twenty", true, true},
        {"twenty frames, tables, loop", "twenty", true, false},
        {"twenty frames with frame pointers, tables, bpf_loop", "framed", true, true},
        {"twenty frames with frame pointers, bpf_get_stack", "framed", false, true},
    };
    int status = 0;
    for (const Row &row : kRows) {
        test::UnwindRun how;
        how.tables = row.tables;
        how.bpf_loop = row.bpf_loop;
        const test::UnwindSeen seen = test::see_workload(row.workload, milliseconds, how);
        if (!seen.why.empty() || seen.stacks.empty()) {
            std::printf("%s: %s\n", row.name, seen.why.empty() ? "no samples" : seen.why.c_str());
            status = 1;
            continue;
        }
        size_t frames = 0;
        for (const test::UnwoundStack &stack : seen.stacks) frames += stack.frames.size();
        std::printf("%s: %.0f ns a run, %llu runs, %zu samples of %.1f frames\n", row.name,
                    static_cast<double>(seen.cost.ns) / static_cast<double>(seen.cost.runs),
                    static_cast<unsigned long long>(seen.cost.runs), seen.stacks.size(),
                    static_cast<double>(frames) / static_cast<double>(seen.stacks.size()));
    }
    return status;
}
