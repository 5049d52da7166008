// Events that are only counted, by their stacks: the sum is exact, however fast they come, whoever is preempted, and where there
// is no room for all stacks.
#include <csignal>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "programs/render/renderer.h"
#include "programs/trace/names.h"
#include "programs/trace/stack_counts.h"
#include "programs/trace/tracer.h"
#include "runtime/kernel/probes.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/uapi.h"
#include "tests/kernel/traced.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

TRACED long rawbpf_counted_leaf(long number) {
    __asm__ volatile("" : "+r"(number) : : "memory");
    return number;
}
TRACED long rawbpf_counted_other(long number) {
    __asm__ volatile("" : "+r"(number) : : "memory");
    return number + 1;
}
// A stack for each depth.
TRACED long rawbpf_counted_deep(int depth) {
    const long sum = depth == 0 ? rawbpf_counted_leaf(1) : rawbpf_counted_deep(depth - 1) + 1;
    __asm__ volatile("" : : : "memory");
    return sum;
}

namespace {

constexpr int kThreads = 4, kRounds = 400, kDepths = 24;

void work() {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([] {
            for (int round = 0; round < kRounds; ++round) {
                for (int depth = 0; depth < kDepths; ++depth) (void)rawbpf_counted_deep(depth);
                (void)rawbpf_counted_other(round);
            }
        });
    for (std::thread &thread : threads) thread.join();
}

struct Sums final : render::Renderer {
    void begin(const RunInfo &) override {}
    void sample(const NamedSample &sample, uint64_t count) override {
        all += count;
        if (sample.user.empty()) return;
        by_leaf[sample.user[0]->symbol] += count;
        by_thread[sample.tid] += count;
        stacks += count > 1;
    }
    void end(const Ledger &) override {}
    std::map<std::string, uint64_t> by_leaf;
    std::map<uint32_t, uint64_t> by_thread;
    uint64_t all = 0, stacks = 0;
};

struct Outcome {
    Sums sums;
    std::vector<PlaceCounts> counts;
    uint64_t counted = 0, unknown = 0;
};

// nullopt: this kernel has no uprobes, or can't count.
std::optional<Outcome> count(uint32_t room, bool threads_apart, std::string &missing) {
    int go[2];
    REQUIRE(pipe(go) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        close(go[1]); // so that it ends when we do
        char word = 0;
        if (read(go[0], &word, 1) != 1) _exit(1);
        work();
        _exit(0);
    }
    const struct Ends {
        int *go;
        pid_t child;
        ~Ends() {
            close(go[0]);
            close(go[1]);
            (void)waitpid(child, nullptr, 0);
        }
    } ends{go, child};

    TraceOptions options;
    options.probes = {"uprobe:/proc/self/exe:rawbpf_counted_leaf", "uprobe:/proc/self/exe:rawbpf_counted_other"};
    options.program.stack = true;
    options.program.ring_bytes = 8 << 20;
    options.program.filters.pids = {static_cast<uint32_t>(child)};
    options.stack_counts = room;
    options.threads_apart = threads_apart;
    options.thread = true;
    const auto tracer = Tracer::open(options);
    if (!tracer && tracer.error().kind == Errc::unsupported) {
        missing = tracer.error().message();
        return {};
    }
    REQUIRE_MESSAGE(tracer, tracer.error().message(), " ", tracer.error().log);
    if (!(*tracer)->counting()) {
        missing = "bpf_loop (5.17) and the kernel's BTF";
        return {};
    }
    Outcome out;
    Names names;
    StackCounts stacks(names, out.sums, {}, sys::monotonic_ns());
    if (threads_apart) stacks.keep_threads_apart();
    processes::Following &following = names.following();
    if (const UnwindProgramOptions *program = (*tracer)->unwinds())
        REQUIRE(following.unwind((*tracer)->object(), options.unwind.memory, *program));
    REQUIRE(following.watch(-1));
    REQUIRE(following.want(static_cast<uint32_t>(child)));
    REQUIRE(stacks.count_in_kernel(**tracer, names));
    REQUIRE(following.tick());
    const Result<void> attached = (*tracer)->attach();
    if (!attached && attached.error().kind == Errc::unsupported) {
        missing = attached.error().message();
        return {};
    }
    REQUIRE_MESSAGE(attached, attached.error().message());
    REQUIRE(write(go[1], "", 1) == 1);
    const auto add = [&](const Event &event) { stacks.add(event); };
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        REQUIRE(following.tick([&] { (*tracer)->poll(add); }));
        REQUIRE(stacks.tick(sys::monotonic_ns()));
        usleep(2000);
    }
    CHECK(status == 0);
    REQUIRE((*tracer)->finish(add));
    REQUIRE(stacks.stop());
    stacks.finish({});
    out.counts = std::move(*(*tracer)->counts());
    out.counted = stacks.counted();
    out.unknown = stacks.unknown();
    return out;
}

} // namespace

TEST_CASE("trace: stacks counted in the kernel add up to the calls, also where there is no room for all") {
    constexpr uint64_t kLeaves = uint64_t{kThreads} * kRounds * kDepths, kOthers = uint64_t{kThreads} * kRounds;
    for (const auto &[room, threads_apart] : {std::pair(1024u, false), {1024u, true}, {4u, false}}) {
        CAPTURE(room);
        CAPTURE(threads_apart);
        std::string missing;
        const std::optional<Outcome> seen = count(room, threads_apart, missing);
        if (!seen) SKIP("needs " + missing);
        CHECK(seen->sums.all == kLeaves + kOthers);
        REQUIRE(seen->counts.size() == 2);
        CHECK(seen->counts[0].shown == kLeaves);
        CHECK(seen->counts[1].shown == kOthers);
        for (const PlaceCounts &place : seen->counts) {
            CHECK(place.lost() == 0);
            CHECK(place.counts.fired == place.shown + place.counts.filtered + place.counts.sampled_out);
        }
        CHECK(seen->unknown == 0);
        // At its first instruction a function has no frame yet, and by frame pointers it may be missing.
        if (seen->sums.by_leaf.count("rawbpf_counted_leaf")) {
            CHECK(seen->sums.by_leaf.at("rawbpf_counted_leaf") == kLeaves);
            CHECK(seen->sums.by_leaf.at("rawbpf_counted_other") == kOthers);
            CHECK(seen->sums.stacks == (kDepths + 1) * (threads_apart ? kThreads : 1));
        }
        if (threads_apart) {
            CHECK(seen->sums.by_thread.size() == kThreads);
            for (const auto &[tid, calls] : seen->sums.by_thread) CHECK(calls == (kLeaves + kOthers) / kThreads);
        }
        if (room >= 1024) CHECK(seen->counted > (kLeaves + kOthers) / 2);
        if (room < kDepths) CHECK(seen->counted < (kLeaves + kOthers) / 2);
    }
}

TEST_CASE("trace: what needs each event isn't counted in the kernel") {
    TraceOptions options;
    options.probes = {"uprobe:/proc/self/exe:rawbpf_counted_leaf"};
    options.program.stack = true;
    options.stack_counts = 64;
    const auto counts = [&](std::string &missing) {
        const auto tracer = Tracer::open(options);
        if (!tracer && tracer.error().kind == Errc::unsupported) missing = tracer.error().message();
        if (!missing.empty()) return false;
        REQUIRE_MESSAGE(tracer, tracer.error().message());
        return (*tracer)->counting() != nullptr;
    };
    std::string missing;
    const bool can = counts(missing);
    if (!missing.empty()) SKIP("needs uprobes: " + missing);
    if (!can) SKIP("needs bpf_loop (5.17) and the kernel's BTF");
    options.filter = "arg0 > 3 && comm != \"somebody\"";
    CHECK(counts(missing));
    options.match.signature = "const char *text";
    options.filter = "text == \"hello\""; // its page may have to be waited for
    CHECK(counts(missing) == (probe_attach_type(uapi::BPF_TRACE_UPROBE_MULTI).support != Support::yes));
    options.filter = "";
    options.program.filters.most_events = 5;
    CHECK_FALSE(counts(missing));
}
