// `profile --off-cpu` on this kernel: only what the tests start is looked at.
#include "programs/profile/off_cpu.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "programs/profile/off_cpu_dsl.h"
#include "programs/profile/profiler.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/off_cpu_workload.h"
#include "tests/kernel/plain_only.h"
#include "tests/kernel/profile_run.h"
#include "tests/support/profile_configs.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Waits : Sink {
    std::vector<CountedSample> all;
    Result<void> samples(std::span<const NamedSample> some) override {
        for (const NamedSample &sample : some) all.push_back({sample, 1, sample.weight});
        return {};
    }
    Result<void> stacks(std::span<const CountedSample> some) override {
        all.insert(all.end(), some.begin(), some.end());
        return {};
    }
    struct Sum {
        uint64_t waits = 0, ns = 0;
    };
    /// Those that `wanted` says yes to.
    template <class Wanted> [[nodiscard]] Sum sum(Wanted &&wanted) const {
        Sum out;
        for (const CountedSample &one : all) {
            if (!wanted(one.sample)) continue;
            out.waits += one.count;
            out.ns += one.weight;
        }
        return out;
    }
};

bool has(const std::vector<FramePtr> &stack, std::string_view function) {
    return std::any_of(stack.begin(), stack.end(),
                       [&](const FramePtr &frame) { return frame->symbol.find(function) != std::string::npos; });
}
/// Waits in that function: of user code it is the leaf.
auto in(std::string_view function) {
    return [function](const NamedSample &s) { return !s.user.empty() && s.user[0]->symbol == function; };
}

uint64_t of(const std::vector<std::pair<std::string, uint64_t>> &counts, std::string_view wanted) {
    for (const auto &[name, count] : counts)
        if (name == wanted) return count;
    return 0;
}

/// The workload is env's at first: until then the tables would be another program's, and the waits, too.
void wait_for_exec(const sys::Child &child) {
    for (int tries = 0; tries < 10'000; ++tries, usleep(1000))
        if (sys::read_file("/proc/" + std::to_string(child.pid()) + "/comm").value_or("") != "env\n") return;
}

ProfileOptions for_workload(const std::string &what) {
    ProfileOptions options;
    options.workload = test::off_cpu_workload(what);
    return options;
}

#if defined(__aarch64__) || defined(__riscv)
#define NEEDS_WAITS() SKIP("the waits of an emulated machine are not what its programs ask for")
#else
#define NEEDS_WAITS() static_cast<void>(0)
#endif

#define OFF_CPU(outcome, options, sink, min_wait_ns)                                                                             \
    const std::unique_ptr<profile::OffCpu> outcome##_waits = profile::make_off_cpu(min_wait_ns);                                 \
    (options).off_cpu = outcome##_waits.get();                                                                                   \
    PROFILE(outcome, options, sink);                                                                                             \
    CHECK_MESSAGE(outcome.ledger.adds_up(), "fired " << outcome.ledger.fired << ", shown " << outcome.ledger.shown               \
                                                     << ", filtered " << outcome.ledger.filtered)

constexpr uint64_t kMs = 1'000'000;

#if defined(__SANITIZE_ADDRESS__)
const bool kSlow = true;
#else
const bool kSlow = std::getenv("RAWBPF_KERNEL") != nullptr; // an emulated machine
#endif

} // namespace

TEST_CASE("profile off-cpu: time that is napped away is there, with the stack of who naps") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    for (const Delivery delivery : {Delivery::each, Delivery::counted}) {
        ProfileOptions options = for_workload("naps");
        options.delivery = delivery;
        Waits sink;
        OFF_CPU(outcome, options, sink, 0);
        const Waits::Sum naps = sink.sum(in("oc_nap")), all = sink.sum([](const NamedSample &) { return true; });
        // Each nap is one wait, unless the thread was preempted for all of it; a part of one may be spent so as well.
        CHECK(naps.waits <= 30);
        CHECK(naps.waits >= 5);
        CHECK(naps.ns >= 100 * kMs);
        CHECK(naps.ns <= outcome.elapsed_ns);
        CHECK(all.waits == outcome.ledger.shown);
        CHECK(of(outcome.ledger.lost, "ring_full") + of(outcome.ledger.lost, "no_room") == 0);
        CHECK(outcome.run.waits());
        CHECK(outcome.run.frequency == 0);
        CHECK(outcome.workload_status == "exited with status 0");
        // A kernel's stack may be empty where there are no registers to begin with.
        const Waits::Sum in_kernel = sink.sum([](const NamedSample &s) { return in("oc_nap")(s) && !s.kernel.empty(); });
        CHECK(sink.sum([](const NamedSample &s) { return in("oc_nap")(s) && has(s.kernel, "nanosleep"); }).waits * 2 >=
              in_kernel.waits);
        CHECK(sink.sum([](const NamedSample &s) { return has(s.kernel, "bpf_prog_") && has(s.kernel, "__schedule"); }).waits ==
              0);
    }
}

TEST_CASE("profile off-cpu: of a process whose tables are there, the caller of who naps") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    auto child = sys::Child::spawn(test::off_cpu_workload("on"));
    REQUIRE(child);
    REQUIRE(child->start());
    wait_for_exec(*child);
    ProfileOptions options;
    options.pids = {child->pid()};
    options.duration_s = 0.7;
    bool walked = true;
    Waits::Sum naps, called;
    // A sanitized program's tables take their time.
    int rounds = 0;
    for (; rounds < 6 && walked && (naps.waits < 3 || called.waits * 2 < naps.waits); ++rounds) {
        Waits sink;
        OFF_CPU(outcome, options, sink, 0);
        naps = sink.sum(in("oc_nap"));
        called = sink.sum([](const NamedSample &s) { return in("oc_nap")(s) && has(s.user, "oc_naps"); });
        walked = naps.waits == 0 || !outcome.ledger.stack_ends.empty();
    }
    (void)child->kill(SIGKILL);
    (void)child->wait();
    if (!walked) SKIP("this kernel doesn't walk by tables");
    CHECK(naps.waits >= 3);
    if (called.waits * 2 < naps.waits && kSlow) SKIP("the tables of this program come late on this machine");
    CHECK(called.waits * 2 >= naps.waits);
    if (rounds > 1) FLAKY("callers weren't there in " + std::to_string(rounds - 1) + " profiles of 0.7 s");
}

TEST_CASE("profile off-cpu: a thread that waits for a mutex") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    ProfileOptions options = for_workload("mutex");
    Waits sink;
    OFF_CPU(outcome, options, sink, 0);
    const Waits::Sum waits =
        sink.sum([](const NamedSample &s) { return s.comm == "taker" && (s.kernel.empty() || has(s.kernel, "futex")); });
    CHECK(waits.ns >= 100 * kMs);
    CHECK(waits.ns <= outcome.elapsed_ns);
    // The one who holds it naps once, at its very beginning, when its stack may still be walked by frame pointers: no names here.
    CHECK(sink.sum([](const NamedSample &sample) { return sample.comm != "taker"; }).ns >= 100 * kMs);
}

TEST_CASE("profile off-cpu: short waits are counted, not shown") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    ProfileOptions options = for_workload("short");
    Waits sink;
    OFF_CPU(outcome, options, sink, 300 * kMs);
    CHECK(sink.sum(in("oc_nap")).waits >= 1);
    CHECK(sink.sum([](const NamedSample &s) { return s.weight < 300 * kMs; }).waits == 0);
    CHECK(of(outcome.ledger.waits, "too_short") >= 10);
    CHECK(outcome.ledger.filtered >= of(outcome.ledger.waits, "too_short"));
}

TEST_CASE("profile off-cpu: children are followed, strangers aren't seen") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    auto stranger = sys::Child::spawn(test::off_cpu_workload("short"));
    REQUIRE(stranger);
    REQUIRE(stranger->start());
    ProfileOptions options = for_workload("forks");
    Waits sink;
    OFF_CPU(outcome, options, sink, 0);
    (void)stranger->kill(SIGKILL);
    (void)stranger->wait();
    std::set<uint32_t> nappers;
    for (const CountedSample &one : sink.all) {
        CHECK(static_cast<int>(one.sample.pid) != stranger->pid());
        if (in("oc_nap")(one.sample)) nappers.insert(one.sample.pid);
    }
    CHECK(nappers.size() <= 10);
    CHECK(nappers.size() > 5); // so grandchildren are among them
    CHECK(of(outcome.ledger.waits, "children_not_followed") == 0);
}

TEST_CASE("profile off-cpu: a wait that isn't over at the end, of a process that was there before") {
    PLAIN_ONLY();
    NEEDS_WAITS();
    auto child = sys::Child::spawn(test::off_cpu_workload("stuck"));
    REQUIRE(child);
    REQUIRE(child->start());
    wait_for_exec(*child);
    ProfileOptions options;
    options.pids = {child->pid()};
    options.duration_s = 0.5;
    // It may nap already, and then it isn't seen to leave its CPU: it is stopped and goes on, for which it has to come back.
    bool seen = false;
    int rounds = 0;
    for (; rounds < 20 && !seen; ++rounds) {
        struct Nudge : Waits {
            sys::Child *child = nullptr;
            Result<void> start(const RunInfo &) override { return child->kill(SIGSTOP); }
            void progress(const Progress &) override { (void)child->kill(SIGCONT); }
        } sink;
        sink.child = &*child;
        OFF_CPU(outcome, options, sink, 0);
        for (const CountedSample &one : sink.all) REQUIRE(static_cast<int>(one.sample.pid) == child->pid());
        CHECK(of(outcome.ledger.waits, "still_waiting") <= 1);
        seen = of(outcome.ledger.waits, "still_waiting") == 1;
    }
    CHECK(seen);
    if (rounds > 1) FLAKY("the wait wasn't seen to begin in " + std::to_string(rounds - 1) + " profiles of 0.5 s");
    (void)child->kill(SIGKILL);
    (void)child->wait();
}

TEST_CASE("profile off-cpu: the kernel takes the program in every configuration") {
    const auto types = kernel_btf();
    if (!types) SKIP("needs the kernel's BTF");
    test::each_profile_config([](const ProfileConfig &config, unsigned number) {
        if (config.skip_idle || number % 3 != 0) return; // every third: each setting is among them, on and off
        INFO(number);
        profile::ProgramOptions options;
        options.config = config;
        auto spec = profile::make_off_cpu(number % 2 ? 5 * kMs : 0)->spec(options);
        REQUIRE(spec);
        auto loaded = load(std::move(*spec));
        REQUIRE_MESSAGE(loaded, loaded.error().message() << loaded.error().log);
    });
}
