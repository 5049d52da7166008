// The tracer at functions of a program: a child calls so many times, and exactly so many are seen.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "programs/trace/tracer.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "tests/kernel/trace_child.h"
#include "tests/kernel/traced.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;
using namespace rawbpf::test;

TRACED long rawbpf_traced_leaf(long number, const char *text) {
    __asm__ volatile("" : : "r"(text) : "memory");
    return number - 3;
}
TRACED long rawbpf_traced_sum(long number) {
    const long sum = number == 0 ? 0 : number + rawbpf_traced_sum(number - 1);
    __asm__ volatile("" : : : "memory");
    return sum;
}
TRACED long rawbpf_traced_middle(long number) {
    // A probe's program can't wait for a page (only what is sleepable can): these literals may lie on one that nobody has read
    // yet.
    const char *const hello = "hello", *const world = "world";
    (void)*static_cast<const volatile char *>(hello), (void)*static_cast<const volatile char *>(world);
    const long sum = rawbpf_traced_leaf(number, hello) + rawbpf_traced_leaf(number + 1, world);
    __asm__ volatile("" : : : "memory");
    return sum;
}

TEST_CASE("trace: calls of a program's functions are counted right to the call") {
    TraceOptions options = of({own("rawbpf_traced_*")});
    options.program.mode = Mode::count;
    options.match.signatures = false;
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(count_of(*seen, "rawbpf_traced_middle") == kCalls);
    CHECK(count_of(*seen, "rawbpf_traced_leaf") == 2 * kCalls);
}

TEST_CASE("trace: each call is an event, with its arguments; a return brings the result") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.match.signature = "long (long number, const char *text)";
    options.program.results = true;
    options.match.results = true;
    options.match.allow_unwind_risk = true;
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == 4 * kCalls);
    CHECK(seen->lines[0] == "rawbpf_traced_leaf(0, \"hello\")");
    CHECK(seen->lines[1] == "rawbpf_traced_leaf = -3");
    CHECK(seen->lines[4 * kCalls - 2] == "rawbpf_traced_leaf(1000, \"world\")");
    CHECK(seen->lines[4 * kCalls - 1] == "rawbpf_traced_leaf = 997");
}

TEST_CASE("trace: filters let through exactly what they describe, and the rest is counted") {
    struct Row {
        const char *filter;
        size_t calls; ///< of the leaf's 2000, whose first arguments are 0 1 1 2 2 3 ... 999 1000
    };
    const Row rows[] = {
        {"arg0 == 7", 2},
        {"number == 7 && text == \"hello\"", 1},
        {"text != \"hello\"", 1000},
        {"text == \"hell\"", 0},
        {"text == \"hello!\"", 0},
        {"arg0 < 10 || arg0 >= 999", 2 * 10 - 1 + 2 + 1},
        {"!(arg0 & 1)", 1000},
        {"arg0 % 10 == 3 && arg0 / 100 == 2", 20},
        {"number > -1 && number << 1 == 20", 2},
        {"(number == 5) + (number == 6) == 1", 4},
        {"-number == -8", 2},
        {"pid == tid && uid < 4000000000 && number == 1", 2},
        {"comm == \"no such name\"", 0},
        {"arg0 == 18446744073709551615", 0},
    };
    for (const Row &row : rows) {
        INFO(row.filter);
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.match.signature = "long number, const char *text";
        options.filter = row.filter;
        std::string missing;
        const std::optional<Traced> seen = traced(options, call_functions, missing);
        if (!seen) SKIP("needs uprobes: " + missing);
        CHECK(seen->lines.size() == row.calls);
        CHECK(seen->counts[0].counts.fired == 2 * kCalls);
        CHECK(seen->counts[0].counts.filtered == 2 * kCalls - row.calls);
    }
}

TEST_CASE("trace: a call and its return are one event, at every depth of recursion") {
    TraceOptions options = of({own("rawbpf_traced_sum")});
    options.match.signature = "long (long number)";
    options.match.allow_unwind_risk = true;
    options.filter = "ret == 10 || ret == 3 && duration > 0";
    std::string missing;
    const std::optional<Traced> seen = traced(
        options, [](int) { (void)rawbpf_traced_sum(5); }, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->lines.size() == 2 * kCalls);
    CHECK(seen->lines[0] == "rawbpf_traced_sum = 3 of (2)");
    CHECK(seen->lines[1] == "rawbpf_traced_sum = 10 of (4)");
    REQUIRE(seen->durations.size() == 2 * kCalls);
    CHECK(seen->durations[0] < seen->durations[1]);
    CHECK(seen->counts[0].counts.fired == 6 * kCalls); // the returns
}

TEST_CASE("trace: threads that share a CPU keep each their own calls") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.match.signature = "long (long number, const char *text)";
    options.match.allow_unwind_risk = true;
    options.program.mode = Mode::count;
    options.filter = "ret == number - 3 && comm != \"nobody\"";
    constexpr int kThreads = 4, kEach = 10 * kCalls;
    const auto work = [](int i) {
        if (i != 0) return;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
        std::vector<std::thread> threads;
        for (long t = 1; t <= kThreads; ++t)
            threads.emplace_back([t] {
                for (int call = 0; call < kEach; ++call) (void)rawbpf_traced_leaf(t << 32 | call, "text");
            });
        for (std::thread &thread : threads) thread.join();
    };
    std::string missing;
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->counts[0].counts.fired == kThreads * kEach);
    CHECK(count_of(*seen, "rawbpf_traced_leaf") == kThreads * kEach);
}

TEST_CASE("trace: only calls that take long enough") {
    TraceOptions options = of({"syscall:clock_nanosleep"});
    options.program.filters.min_duration = 1'000'000;
    options.program.calls = false;
    std::string missing;
    const auto work = [](int i) {
        if (i >= 40) return;
        timespec wait{0, i % 10 == 3 ? 2'000'000 : 1'000};
        (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &wait, nullptr);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    // The short ones may be held up by others, the long ones can't be short.
    CHECK(seen->durations.size() >= 4);
    CHECK(seen->durations.size() <= 40);
    for (uint64_t duration : seen->durations) CHECK(duration >= 1'000'000);
    CHECK(seen->counts[0].counts.fired >= 40); // others sleep, too
}

TEST_CASE("trace: descriptors lead to their files") {
    TraceOptions options = of({"syscall:read"});
    options.filter = "count == 77";
    std::string missing;
    const auto work = [](int) {
        static const int fd = open("/proc/version", O_RDONLY);
        char text[80];
        (void)syscall(SYS_read, fd, text, 77);
    };
    const std::optional<Traced> seen = traced(options, work, missing);
    if (!seen) SKIP("needs tracepoints of system calls: " + missing);
    if (!kernel_btf()) SKIP("needs the kernel's BTF");
    REQUIRE(seen->lines.size() == kCalls);
    CHECK_MESSAGE(seen->lines[0].find("</proc/version>") != std::string::npos, seen->lines[0]);
}

TEST_CASE("trace: with each event the stack of the program") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.stack = true;
    options.filter = "arg0 < 3";
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    REQUIRE(seen->stacks.size() == 5);
    for (const auto &stack : seen->stacks) {
        REQUIRE_FALSE(stack.empty());
        CHECK(stack[0] == reinterpret_cast<uintptr_t>(&rawbpf_traced_leaf));
    }
}

TEST_CASE("trace: only tasks of a namespace") {
    for (const bool other : {false, true}) {
        // A child in a pid and mount namespace of its own, whose events aren't those of ours.
        int ready[2];
        REQUIRE(pipe(ready) == 0);
        const pid_t stranger = fork();
        REQUIRE(stranger >= 0);
        if (stranger == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const bool done = unshare(CLONE_NEWNS) == 0;
            (void)!write(ready[1], done ? "y" : "n", 1);
            pause();
            _exit(0);
        }
        char word = 0;
        REQUIRE(read(ready[0], &word, 1) == 1);
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.mntns = other ? stranger : getpid();
        options.pidns = getpid();
        std::string missing;
        const std::optional<Traced> seen = traced(options, call_functions, missing);
        kill(stranger, SIGKILL);
        waitpid(stranger, nullptr, 0);
        close(ready[0]);
        close(ready[1]);
        if (!seen) SKIP("needs uprobes: " + missing);
        if (word != 'y') SKIP("needs mount namespaces");
        CHECK(seen->lines.size() == (other ? 0 : 2 * kCalls));
        CHECK(seen->counts[0].counts.fired == 2 * kCalls);
    }
}

TEST_CASE("trace: only tasks of a cgroup") {
    std::string root;
    std::ifstream mounts("/proc/mounts");
    for (std::string device, where, type, rest; mounts >> device >> where >> type && std::getline(mounts, rest);)
        if (type == "cgroup2" && root.empty()) root = where;
    const std::string folder = root + "/rawbpf_trace_test";
    if (root.empty() || (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST)) SKIP("needs cgroup v2, and the right to make one");
    for (const bool inside : {false, true}) {
        TraceOptions options = of({own("rawbpf_traced_leaf")});
        options.cgroup = folder;
        std::string missing;
        const auto work = [&](int i) {
            if (inside && i == 0) std::ofstream(folder + "/cgroup.procs") << getpid();
            call_functions(i);
        };
        const std::optional<Traced> seen = traced(options, work, missing);
        rmdir(folder.c_str());
        if (!seen) SKIP("needs uprobes: " + missing);
        CHECK(seen->lines.size() == (inside ? 2 * kCalls : 0));
        CHECK(seen->counts[0].counts.filtered == (inside ? 0 : 2 * kCalls));
        mkdir(folder.c_str(), 0755);
    }
    rmdir(folder.c_str());
}

TEST_CASE("trace: one in so many, exactly") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.filters.one_in = 10;
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    // On each CPU each tenth; the child may have moved.
    CHECK(seen->lines.size() >= 2 * kCalls / 10 - 16);
    CHECK(seen->lines.size() <= 2 * kCalls / 10);
    CHECK(seen->counts[0].counts.sampled_out == 2 * kCalls - seen->lines.size());
}

TEST_CASE("trace: so many events and no more") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.filters.most_events = 100;
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->lines.size() == 100); // one thread: none comes in between
    CHECK(seen->counts[0].counts.filtered == 2 * kCalls - 100);
}

TEST_CASE("trace: a ring that is too small loses events, and says how many") {
    TraceOptions options = of({own("rawbpf_traced_leaf")});
    options.program.ring_bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
    std::string missing;
    const std::optional<Traced> seen = traced(options, call_functions, missing);
    if (!seen) SKIP("needs uprobes: " + missing);
    CHECK(seen->counts[0].counts.lost > 0);
    CHECK(seen->lines.size() + seen->counts[0].counts.lost == 2 * kCalls);
}
