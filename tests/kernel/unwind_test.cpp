// Stacks of code without frame pointers, walked in the kernel: workloads whose stacks are known, and what they come out as.
#include "programs/unwind/unwinder.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include <linux/bpf.h>

#include "programs/profile/profiler.h"
#include "programs/profile/program.h"
#include "programs/session/stack_counting.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/process.h"
#include "tests/kernel/unwind_run.h"
#include "tests/kernel/unwind_workload.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::UnwindCopies;
using test::UnwindRun;
using test::UnwindSeen;
using test::UnwoundStack;

namespace {

#define SEE(out, ...)                                                                                                            \
    const UnwindSeen out = test::see_workload(__VA_ARGS__);                                                                      \
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");                                                     \
    REQUIRE_MESSAGE(out.why.empty(), out.why)

// All samples that are in the workload's own code (not before it has begun, nor at its end).
std::vector<const UnwoundStack *> with_leaf(const UnwindSeen &seen, std::string_view leaf) {
    std::vector<const UnwoundStack *> out;
    for (const UnwoundStack &stack : seen.stacks)
        if (!stack.names.empty() && stack.names.front() == leaf) out.push_back(&stack);
    return out;
}

// 95 in a hundred end at the outermost frame, of runs of a few hundred samples; the stacks of the others. (Where a system call
// ends the thread, its memory can't be read; nothing describes the C library's clone3() around its system call; and for three
// instructions a function that aligns its stack counts from r10, of which the walk knows nothing: one sample in a hundred of a
// program that does little else.)
void check_roots(const UnwindSeen &seen) {
    size_t roots = 0;
    std::string others;
    for (const UnwoundStack &stack : seen.stacks) {
        const bool root = stack.flags == (UNWIND_TABLES | UNWIND_ENDED_ROOT);
        roots += root;
        if (!root && others.size() < 2000) others += "\n" + stack.text();
    }
    INFO(others);
    CHECK(seen.stacks.size() > 30);
    CHECK(roots * 100 >= seen.stacks.size() * 95);
}

using Chain = std::vector<std::string_view>;
// The frames from the leaf on, "*" for one or more that are anything else.
bool begins(const UnwoundStack &stack, const Chain &chain) {
    size_t at = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
        if (chain[i] != "*") {
            if (at >= stack.names.size() || stack.names[at++] != chain[i]) return false;
            continue;
        }
        const size_t before = at;
        while (at < stack.names.size() && stack.names[at] != chain[i + 1]) ++at;
        if (at == before) return false;
    }
    return true;
}

// Runs it on what this kernel has; every stack with that leaf must be that chain.
void check_chain(const std::string &what, const Chain &chain, const UnwindRun &how = {}) {
    SEE(out, what, 400, how);
    check_roots(out);
    const auto stacks = with_leaf(out, chain.front());
    CHECK(stacks.size() * 2 > out.stacks.size());
    size_t wrong = 0;
    for (const UnwoundStack *stack : stacks) {
        if (how.copies != UnwindCopies::off && !stack->copied) continue; // check_roots() has counted it
        if (begins(*stack, chain)) continue;
        if (++wrong == 1) MESSAGE(stack->text());
    }
    CHECK(wrong == 0);
}

Chain recursion(size_t depth, std::string_view body) {
    Chain chain{"uw_spin"};
    chain.insert(chain.end(), depth, "uw_recurse");
    chain.insert(chain.end(), {body, "uw_run"});
    return chain;
}

} // namespace

TEST_CASE("unwind: load: with bpf_loop, and with a loop that calls a global function") {
    if (!has_program_type(BPF_PROG_TYPE_PERF_EVENT)) SKIP("needs perf_event programs");
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    UnwindProgramOptions unwind = probe_unwind();
    for (const bool loop : {true, false}) {
        if (loop && !unwind.has_bpf_loop) continue;
        unwind.has_bpf_loop = loop;
        unwind.copies = loop || !probe_unwind().has_bpf_loop; // with copies of stacks as it is used
        INFO(loop);
        profile::ProgramOptions options;
        options.config = {1, 1, 0, 0, 0, 0, 0, 0, {}, 0, 0};
        options.unwind = unwind;
        auto spec = profile::program_spec(options);
        REQUIRE(spec);
        Result<LoadedObject> object = load(std::move(*spec));
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    }
}

// Not a matter of a machine's speed: how many instructions the verifier takes is the same wherever a kernel runs. It was eight
// times as many as there are, and seventeen with counting, as ways that met were followed each to the end (Unwinder::forget).
TEST_CASE("unwind: the verifier goes through a program's instructions not much more than once") {
    if (!has_program_type(BPF_PROG_TYPE_PERF_EVENT)) SKIP("needs perf_event programs");
    const UnwindProgramOptions unwind = probe_unwind();
    if (!unwind.has_bpf_loop) SKIP("needs bpf_loop, 5.17");
    for (const bool copies : {false, true})
        for (const bool counts : {false, true}) {
            if (counts && session::why_not_counted()) continue;
            INFO(copies, counts);
            profile::ProgramOptions options;
            options.config = {1, 1, 0, 0, 0, 0, 0, 0, {}, 0, 0};
            options.unwind = unwind;
            options.unwind->copies = copies;
            if (counts) options.counting.emplace();
            auto spec = profile::program_spec(options);
            REQUIRE(spec);
            const size_t insns = spec->programs[0].insns.size();
            Result<LoadedObject> object = load(std::move(*spec));
            REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
            const auto info = sys::prog_info(object->programs[0].fd.get());
            REQUIRE(info);
            REQUIRE(info->verified_insns != 0); // 5.16
            CHECK(info->verified_insns >= insns);
            CHECK(info->verified_insns <= 3 * insns);
        }
}

TEST_CASE("unwind: a recursion has as many frames as calls") {
    check_chain("recurse", recursion(30, "uw_case_recurse"));
    UnwindRun how;
    how.bpf_loop = false;
    check_chain("recurse", recursion(30, "uw_case_recurse"), how);
}

TEST_CASE("unwind: tables that were prepared are there at once") {
    UnwindRun how;
    how.prepared = true;
    check_chain("qsort", {"uw_spin", "uw_compare", "*", "uw_case_qsort", "uw_run"}, how);
}

TEST_CASE("unwind: through the C library's qsort, to the callback") {
    check_chain("qsort", {"uw_spin", "uw_compare", "*", "uw_case_qsort", "uw_run"});
}

TEST_CASE("unwind: functions that move and align their stack") {
    check_chain("alloca", {"uw_spin", "uw_alloca", "uw_case_alloca", "uw_run"});
    check_chain("aligned", {"uw_spin", "uw_aligned", "uw_calls_aligned", "uw_case_aligned", "uw_run"});
}

TEST_CASE("unwind: a thread, to where it starts") { check_chain("thread", {"uw_spin", "uw_thread"}); }

TEST_CASE("unwind: a signal's handler, on what it interrupted") {
    check_chain("signal", {"uw_spin", "uw_handler", "*", "uw_undefined", "uw_case_signal", "uw_run"});
    check_chain("signal_stack", {"uw_spin", "uw_handler", "*", "uw_undefined", "uw_case_signal_stack", "uw_run"});
}

TEST_CASE("unwind: from within the kernel, by the thread's own registers") {
    check_chain("system", {"uw_read", "uw_case_system", "uw_run"});
    SEE(out, "system", 200);
    CHECK(std::any_of(out.stacks.begin(), out.stacks.end(), [](const UnwoundStack &stack) { return stack.in_kernel; }));
}

TEST_CASE("unwind: a stack deeper than the limit") {
    for (const uint32_t depth : {20u, 255u}) {
        UnwindRun how;
        how.depth = depth;
        SEE(out, "deep", 300, how);
        const auto stacks = with_leaf(out, "uw_spin");
        CHECK(stacks.size() > 20);
        for (const UnwoundStack *stack : stacks) {
            CHECK(PROFILE_ENDING(stack->flags) == (depth == 20 ? UNWIND_ENDED_DEPTH : UNWIND_ENDED_ROOT));
            CHECK(stack->run(1, "uw_recurse") == (depth == 20 ? 19 : 200));
        }
    }
}

TEST_CASE("unwind: a process that nothing is known of goes by frame pointers, and says so") {
    UnwindRun how;
    how.tables = false;
    SEE(out, "recurse", 200, how);
    CHECK(out.stacks.size() > 20);
    for (const UnwoundStack &stack : out.stacks) CHECK(stack.flags == UNWIND_ENDED_NO_PROCESS);
}

TEST_CASE("unwind: after an exec nothing is walked by the old program's tables, even if they are told again") {
    for (const bool old_news : {false, true}) {
        CAPTURE(old_news);
        UnwindRun how;
        how.old_news = old_news;
        SEE(out, "exec", 300, how);
        size_t unknown = 0;
        for (const UnwoundStack &stack : out.stacks) unknown += stack.flags == UNWIND_ENDED_NO_PROCESS;
        INFO(unknown << " of " << out.stacks.size());
        CHECK(unknown > 20);
        CHECK(unknown * 10 >= out.stacks.size() * 9); // the others came before it
    }
}

TEST_CASE("unwind: copies: what nothing is known of is walked afterwards, and is the same") {
    UnwindRun how;
    how.copies = UnwindCopies::nothing;
    check_chain("recurse", recursion(30, "uw_case_recurse"), how);
    if (!probe_unwind().has_bpf_loop) return; // each takes the verifier its time
    check_chain("qsort", {"uw_spin", "uw_compare", "*", "uw_case_qsort", "uw_run"}, how);
    check_chain("aligned", {"uw_spin", "uw_aligned", "uw_calls_aligned", "uw_case_aligned", "uw_run"}, how);
    check_chain("signal", {"uw_spin", "uw_handler", "*", "uw_undefined", "uw_case_signal", "uw_run"}, how);
    check_chain("system", {"uw_read", "uw_case_system", "uw_run"}, how);
    check_chain("hollow", {"uw_hollow"}, how);
}

TEST_CASE("unwind: copies: of code that was mapped a moment ago, not of what has been unknown for long") {
    UnwindRun how;
    how.copies = UnwindCopies::other;
    check_chain("recurse", recursion(30, "uw_case_recurse"), how);
    how.copies = UnwindCopies::long_ago;
    SEE(out, "recurse", 200, how);
    const auto stacks = with_leaf(out, "uw_spin");
    CHECK(stacks.size() > 20);
    size_t copied = 0, other = 0;
    for (const UnwoundStack *stack : stacks) {
        copied += stack->copied;
        other += stack->flags != (UNWIND_TABLES | UNWIND_ENDED_NO_MAPPING) || stack->frames.size() != 1;
    }
    CHECK(copied == 0);
    CHECK(other == 0);
}

namespace {

// Samples of the storm's children at work, and how many have the function that all of them begin with.
struct Whole : Sink {
    uint64_t all = 0, whole = 0;
    std::map<std::string, uint64_t, std::less<>> ends; // of those without it, by how the walk ended
    Result<void> stacks(std::span<const CountedSample> some) override {
        for (const CountedSample &counted : some) {
            const auto has = [&](std::string_view name) {
                return std::any_of(counted.sample.user.begin(), counted.sample.user.end(),
                                   [&](const FramePtr &frame) { return frame->symbol.find(name) != std::string::npos; });
            };
            if (!has("uw_spin") && !has("uw_recurse")) continue;
            all += counted.count;
            if (has("uw_run"))
                whole += counted.count;
            else
                ends[std::string(counted.sample.user_end)] += counted.count;
        }
        return {};
    }
};
void check_storm(const ProfileOptions &options) {
    Whole count;
    const auto outcome = run_profile(options, count);
    REQUIRE_MESSAGE(outcome, outcome.error().message() << outcome.error().log);
    std::string others = "the others:";
    for (const auto &[end, n] : count.ends) others += " " + end + " " + std::to_string(n) + ",";
    for (const auto &[reason, n] : outcome->ledger.degraded) others += " degraded " + reason + " " + std::to_string(n) + ",";
    for (const auto &[reason, n] : outcome->ledger.lost) others += " lost " + reason + " " + std::to_string(n) + ",";
    INFO(count.whole << " of " << count.all << "; " << others);
    CHECK(count.all > 50);
    CHECK(count.whole * 10 >= count.all * 8);
    CHECK(outcome->ledger.adds_up());
}
ProfileOptions of_storm() {
    ProfileOptions options;
    options.frequency = 999;
    options.kernel_stacks = false; // to name them takes a slow machine long
    options.delivery = Delivery::counted;
    return options;
}

} // namespace

TEST_CASE("unwind: copies: a storm of short processes, each to its root") {
    if (!probe_unwind().has_bpf_loop) SKIP("needs bpf_loop, 5.17");
    ProfileOptions options = of_storm();
    options.workload = test::unwind_workload("storm", 10);
    check_storm(options);
}

TEST_CASE("unwind: copies: a storm, each to its root, in a profile of the whole machine") {
    if (!std::getenv("RAWBPF_KERNEL")) SKIP("this machine is others', too: in guests");
    if (!probe_unwind().has_bpf_loop) SKIP("needs bpf_loop, 5.17");
    std::string again = "while :; do";
    for (const std::string &word : test::unwind_workload("storm", 10)) again += " " + word;
    auto shell = sys::Child::spawn({"sh", "-c", again + "; done"});
    REQUIRE(shell);
    REQUIRE(shell->start());
    ProfileOptions options = of_storm();
    options.duration_s = 2;
    options.ring_bytes = 32 << 20; // the first names take a slow machine half a second, and copies wait meanwhile
    check_storm(options);
    (void)shell->kill(SIGKILL);
    (void)shell->wait();
}

namespace {

// Nonsense in every map, shaped so that the walk goes on: all addresses are in one mapping, the program's pages have rows, and
// rules of all kinds lead to numbers of all sizes.
Result<void> nonsense(LoadedObject &object, uint32_t pid, uint64_t seed, uint16_t kind) {
    const auto random = [&] { return seed = seed * 6364136223846793005u + 1442695040888963407u, seed >> 20; };
    const Map pool = TRY(Map::create(unwind_pool_spec()));
    std::vector<std::byte> bytes(UNWIND_POOL_BYTES);
    for (size_t at = 0; at < bytes.size();
         at += sizeof(uint32_t)) { // as positions in pools, and as rows with rules, that there are
        const auto word = static_cast<uint32_t>(random() % (uint64_t{4} << UNWIND_POOL_BITS)) & ~0xe000u;
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
    const uint64_t bias = TRY(symbols::read_maps(static_cast<int>(pid))).regions.front().start & ~0xffffull;
    const UnwindMapping all{0, ~0ull, bias, static_cast<uint32_t>(random() % (uint64_t{4} << UNWIND_POOL_BITS)), 0xffff, kind};
    std::memcpy(bytes.data(), &all, sizeof all);
    const uint32_t zero = 0;
    TRY(pool.update(&zero, bytes.data()));
    const Map &pools = *object.find_map("unwind_pools"), &rules = *object.find_map("unwind_rules");
    const auto fd = static_cast<uint32_t>(pool.fd());
    for (uint32_t i = 0; i < pools.max_entries(); ++i) TRY(pools.update(&i, &fd));
    for (uint32_t i = 0; i < UNWIND_RULES; ++i) {
        const auto offset = [&](uint64_t most) {
            return static_cast<int16_t>(static_cast<int64_t>(random() % (2 * most)) - static_cast<int64_t>(most));
        };
        const uint64_t most = i % 3 == 0 ? 32768 : 8;
        TRY(rules.put(i, UnwindRule{static_cast<uint8_t>(random() % 10), static_cast<uint8_t>(random()), offset(most),
                                    offset(most), offset(most)}));
    }
    return object.find_map("unwind_processes")
        ->put(pid, UnwindProcess{1 << UNWIND_POOL_BITS, 1, 0, 0, 0}); // not the first, which is LiveTables'
}

} // namespace

TEST_CASE("unwind: nonsense in the tables ends the walk, not the kernel") {
    size_t endings[UNWIND_ENDINGS] = {};
    for (const bool bpf_loop : {true, false}) {
        if (bpf_loop && !probe_unwind().has_bpf_loop) continue;
        for (uint64_t seed = bpf_loop ? 1 : 4; seed <= 6; ++seed) {
            UnwindRun how;
            how.pools = 4; // to fill a slot takes a grace period
            how.tables = false;
            how.bpf_loop = bpf_loop;
            how.change = [&](LoadedObject &object, uint32_t pid) {
                return nonsense(object, pid, seed, seed == 6 ? UNWIND_BY_FP : UNWIND_BY_TABLE);
            };
            SEE(out, "recurse", 60, how);
            CHECK(out.stacks.size() > 5);
            for (const UnwoundStack &stack : out.stacks) {
                CHECK((stack.flags & UNWIND_TABLES) != 0);
                if (stack.frames.empty()) // a thread without a stack is believed to have ended
                    CHECK(PROFILE_ENDING(stack.flags) == UNWIND_ENDED_UNREADABLE);
                CHECK(stack.frames.size() <= 127);
                ++endings[PROFILE_ENDING(stack.flags)];
            }
        }
    }
    std::string text;
    for (const size_t n : endings) text += std::to_string(n) + " ";
    INFO(text);
    // Where the program lies is random, so what a table of nonsense says of it is, too: three tables, which is what kernels
    // without bpf_loop() get, may all end the walk in the same way.
    if (probe_unwind().has_bpf_loop)
        CHECK(std::count_if(std::begin(endings), std::end(endings), [](size_t n) { return n > 0; }) >= 2);
}
