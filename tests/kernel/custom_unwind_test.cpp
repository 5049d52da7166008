// Custom traces whose user stacks are walked by unwind tables: whole stacks of code without frame pointers, in every kind of
// program, and each its own thread's.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <unistd.h>

#include "tests/kernel/custom_support.h"
#include "tests/kernel/plain_only.h"

using namespace rawbpf;
using namespace rawbpf::custom;
using rawbpf::test::Seen;
using rawbpf::test::traced;

// unwind_workload.cpp: without frame pointers.
extern "C" void uw_case_recurse();
extern "C" void uw_case_qsort();

TRACED void rawbpf_custom_mixed(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }
#define RAWBPF_MIXED(n)                                                                                                          \
    TRACED void rawbpf_custom_mixed_##n(uint64_t id) {                                                                           \
        rawbpf_custom_mixed(id);                                                                                                 \
        __asm__ volatile("" : : : "memory");                                                                                     \
    }
RAWBPF_MIXED(0)
RAWBPF_MIXED(1)
RAWBPF_MIXED(2)
RAWBPF_MIXED(3)

namespace {

#define OPEN_WITH_TABLES_OR_SKIP(tracer, options)                                                                                \
    options.copies = true;                                                                                                       \
    options.unwind.by = UnwindBy::automatic;                                                                                     \
    OPEN_OR_SKIP(tracer, options);                                                                                               \
    if (!tracer.unwinds()) {                                                                                                     \
        REQUIRE_FALSE(tracer.notes().empty());                                                                                   \
        FAIL(tracer.notes().front());                                                                                            \
    }

uint64_t sum(const std::vector<std::pair<std::string, uint64_t>> &counts) {
    uint64_t out = 0;
    for (const auto &[name, count] : counts) out += count;
    return out;
}

bool is_whole(const Record &head) {
#if defined(__aarch64__) // emulated, and so slow that tables come late: a copy of a stack ends after 16 KiB, here about main()
    if (head.ending == (UNWIND_TABLES | UNWIND_ENDED_UNREADABLE)) return true;
#endif
    return head.ending == (UNWIND_TABLES | UNWIND_ENDED_ROOT);
}

bool has(const std::vector<std::string> &stack, std::string_view name) {
    return std::find(stack.begin(), stack.end(), name) != stack.end();
}

} // namespace

TEST_CASE("custom: stacks of code without frame pointers are whole, by unwind tables") {
    PLAIN_ONLY();
    CustomOptions options;
    OPEN_WITH_TABLES_OR_SKIP(tracer, options);
    REQUIRE(tracer.add_function("/proc/self/exe:uw_spin").has_value());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            uw_case_recurse();
            uw_case_qsort();
        },
        why);
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->heads.size() >= 2);
    REQUIRE(seen->stacks.size() == seen->heads.size());
    for (size_t i = 0; i < seen->heads.size(); ++i) {
        const std::vector<std::string> &stack = seen->stacks[i];
        std::string all;
        for (const std::string &name : stack) all += name + " ";
        INFO(all);
        CHECK(is_whole(seen->heads[i]));
        REQUIRE(stack.size() >= 4);
        CHECK(stack[0] == "uw_spin");
        CHECK((has(stack, "main") || static_cast<uint8_t>(seen->heads[i].ending) != UNWIND_ENDED_ROOT));
        if (i == 0) {
            CHECK(seen->heads[i].context == 30000);
            CHECK(std::count(stack.begin(), stack.end(), "uw_recurse") == 30);
            CHECK(has(stack, "uw_case_recurse"));
        } else {
            CHECK(seen->heads[i].context == 10000);
            CHECK(stack[1] == "uw_compare");
            CHECK(has(stack, "uw_case_qsort")); // above the C library's qsort()
        }
    }
    CHECK(sum(seen->stack_ends) == seen->heads.size());
}

TEST_CASE("custom: samples and waits are walked by tables, too, and every ending is counted once") {
    PLAIN_ONLY();
    CustomOptions options;
    options.kinds = {ProgramKind::probe, ProgramKind::perf_event, ProgramKind::tracepoint};
    options.sample_hz = 999;
    options.off_cpu = options.follow_only = true;
    OPEN_WITH_TABLES_OR_SKIP(tracer, options);
    REQUIRE(tracer.add_function("/proc/self/exe:rawbpf_custom_mixed").has_value());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            rawbpf_custom_mixed_0(1);
            for (int i = 0; i < 10; ++i) {
                for (int n = 0; n < 100; ++n) uw_case_recurse();
                usleep(5000);
            }
        },
        why);
    if (!seen) SKIP("needs uprobes and tracepoints: " + why);
    REQUIRE(seen->of(Origin::custom) == 1);
    uint32_t pid = 0;
    for (const Record &head : seen->heads)
        if (head.origin == Origin::custom) pid = head.pid;
    uint64_t with_stack = 0, roots[4] = {};
    for (const Record &head : seen->heads) {
        if (head.user_bytes <= 0) continue;
        ++with_stack;
        CHECK(head.ending != 0);
        if (head.pid == pid && is_whole(head)) ++roots[static_cast<size_t>(head.origin)];
    }
    CHECK(sum(seen->stack_ends) == with_stack);
    CHECK(roots[static_cast<size_t>(Origin::custom)] == 1);
    CHECK(roots[static_cast<size_t>(Origin::sampling)] > 0);
    CHECK(roots[static_cast<size_t>(Origin::off_cpu)] > 0);
}

// They are preempted in the middle of the walk where the kernel does that (6.0, preempt=full): custom_lanes_test.cpp.
TEST_CASE("custom: threads that share a CPU have each their own stack") {
    PLAIN_ONLY();
    constexpr uint64_t kCalls = 300;
    CustomOptions options;
    OPEN_WITH_TABLES_OR_SKIP(tracer, options);
    REQUIRE(tracer.add_function("/proc/self/exe:rawbpf_custom_mixed").has_value());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
            if (sched_setaffinity(0, sizeof one, &one) != 0) _exit(1);
            using Work = void (*)(uint64_t);
            constexpr Work kWork[] = {rawbpf_custom_mixed_0, rawbpf_custom_mixed_1, rawbpf_custom_mixed_2, rawbpf_custom_mixed_3};
            std::vector<std::thread> threads;
            for (uint64_t t = 0; t < 4; ++t)
                threads.emplace_back([work = kWork[t], t] {
                    for (uint64_t i = 0; i < kCalls; ++i) work(t << 32 | i);
                });
            for (std::thread &thread : threads) thread.join();
        },
        why);
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->stacks.size() == seen->heads.size());
    CHECK(seen->heads.size() > 0);
    uint64_t wrong = 0;
    for (size_t i = 0; i < seen->heads.size(); ++i) {
        const std::string own = "rawbpf_custom_mixed_" + std::to_string(seen->heads[i].context >> 32);
        const std::vector<std::string> &stack = seen->stacks[i];
        wrong += stack.size() < 3 || stack[0] != "rawbpf_custom_mixed" || stack[1] != own ||
                 (seen->heads[i].ending & UNWIND_TABLES) == 0;
    }
    CHECK(wrong == 0);
    CHECK(sum(seen->stack_ends) == seen->heads.size());
}
