// Samples of what happens instead of what takes time: page faults, context switches, hits of a tracepoint. The workloads do a
// known number of each, so sums of weights can be compared with it; a little less may arrive (the kernel skips a program while
// another one runs on that CPU), and a little more happens than was meant (sanitizers touch memory of their own).
#include <cstdlib>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/profile/profiler.h"
#include "runtime/base/format.h"
#include "runtime/link/tracefs.h"
#include "runtime/sys/file.h"
#include "tests/kernel/plain_only.h"
#include "tests/kernel/profile_run.h"
#include "tests/kernel/profile_workload.h"
#include "tests/support/profile_in_c.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

/// Sums what samples stand for.
struct Sum : Sink {
    std::string function; ///< only of samples with this on their user stack
    uint64_t weight = 0, samples_ = 0, all = 0, with_kernel = 0;
    explicit Sum(std::string name) : function(std::move(name)) {}
    void add(const NamedSample &sample, uint64_t count, uint64_t its) {
        all += count;
        bool in = false;
        for (const FramePtr &frame : sample.user) in = in || frame->symbol.find(function) != std::string::npos;
        if (!in) return;
        samples_ += count;
        weight += its;
        if (!sample.kernel.empty()) with_kernel += count;
    }
    Result<void> samples(std::span<const NamedSample> some) override {
        for (const NamedSample &sample : some) add(sample, 1, sample.weight);
        return {};
    }
    Result<void> stacks(std::span<const CountedSample> some) override {
        for (const CountedSample &stack : some) add(stack.sample, stack.count, stack.weight);
        return {};
    }
};

ProfileOptions of(const std::string &event, uint64_t period, const std::string &what, int number) {
    ProfileOptions options;
    options.event = event;
    options.period = period;
    options.workload = test::workload(what, number);
    // Not what these tests are about, and slow where the machine is emulated: thousands of kernel functions to be named, tables.
    options.kernel_stacks = false;
    options.unwind = UnwindBy::fp;
    return options;
}

} // namespace

TEST_CASE("profile events: page faults are counted where they happen") {
    PLAIN_ONLY();
    constexpr int kPages = 3000;
    for (const uint64_t period : {1, 7}) {
        ProfileOptions options = of("page-faults", period, "faults", kPages);
        options.delivery = period == 1 ? Delivery::each : Delivery::counted;
        Sum sum("fault_body");
        PROFILE(outcome, options, sum);
        CHECK(outcome.ledger.adds_up());
        CHECK(outcome.run.event == "page-faults");
        CHECK(outcome.run.period == period);
        CHECK(outcome.run.frequency == 0);
        CHECK(sum.samples_ > 0);
        CHECK(sum.weight == sum.samples_ * period);
        if (test::lost(outcome) > 0) continue;
        CHECK(sum.weight > kPages * 8 / 10);
        CHECK(sum.weight < kPages * 16 / 10);
    }
}

TEST_CASE("profile events: a context switch is seen under the call that sleeps") {
    PLAIN_ONLY();
    for (const UnwindBy by : {UnwindBy::fp, UnwindBy::automatic}) {
        ProfileOptions options = of("context-switches", 0, "sleeps", 40);
        options.unwind = by;
        options.kernel_stacks = true;
        Sum sum("sleep_caller");
        PROFILE(outcome, options, sum);
        CHECK(outcome.ledger.adds_up());
        CHECK(sum.all > 0);
        if (test::lost(outcome) > 0) continue;
        if (sum.weight < 20 && std::getenv("RAWBPF_KERNEL")) SKIP("a sleep on this emulated machine isn't always a switch");
        CHECK(sum.weight >= 20);
        CHECK(sum.weight < 400);
        CHECK(sum.with_kernel == sum.samples_); // how it came to the switch
    }
}

TEST_CASE("profile events: each hit of a tracepoint, or each third") {
    PLAIN_ONLY();
    constexpr int kCalls = 600;
    if (const auto id = tracepoint_id("syscalls/sys_enter_getpriority"); !id)
        SKIP("CONFIG_FTRACE_SYSCALLS: " + id.error().message());
    for (const uint64_t period : {1, 3}) {
        ProfileOptions options = of("tracepoint:syscalls:sys_enter_getpriority", period, "calls", kCalls);
        const std::optional<ObjectSpec> in_c = test::profile_in_c();
        if (period == 1 && in_c) options.program = &*in_c;
        Sum sum("call_caller");
        PROFILE(outcome, options, sum);
        CHECK(outcome.ledger.adds_up());
        CHECK(outcome.run.event == "syscalls:sys_enter_getpriority");
        CHECK((outcome.ledger.sampled_out > 0) == (period > 1));
        if (test::lost(outcome) > 0) continue;
        CHECK(sum.weight > kCalls * 9 / 10);
        CHECK(sum.weight < kCalls * 11 / 10);
    }
}

TEST_CASE("profile events: a capture keeps the event and what a sample stands for") {
    PLAIN_ONLY();
    const int fd = memfd_create("capture", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    ProfileOptions options = of("minor-faults", 5, "faults", 2000);
    options.record_fd = fd;
    options.delivery = Delivery::counted;
    Sum live("fault_body"), again("fault_body");
    PROFILE(outcome, options, live);
    CHECK(outcome.ledger.adds_up());
    auto capture = sys::map_file(format("/proc/self/fd/{}", fd));
    REQUIRE(capture);
    ReportOptions report;
    report.delivery = Delivery::counted;
    auto told = report_capture(capture->bytes(), "capture", report, again);
    REQUIRE_MESSAGE(told, told.error().message());
    CHECK(told->run.event == "minor-faults");
    CHECK(told->run.period == 5);
    CHECK(told->run.frequency == 0);
    CHECK(again.weight == live.weight);
    CHECK(again.samples_ * 5 == again.weight);
    close(fd);
}

TEST_CASE("profile events: threads apart") {
    PLAIN_ONLY();
    struct Threads : Sink {
        std::set<uint32_t> tids;
        Result<void> stacks(std::span<const CountedSample> some) override {
            for (const CountedSample &stack : some)
                for (const FramePtr &frame : stack.sample.user)
                    if (frame->symbol.find("worker_body") != std::string::npos) tids.insert(stack.sample.tid);
            return {};
        }
    } threads;
    ProfileOptions options = of("cpu-clock", 0, "threads", 600);
    options.frequency = 499;
    options.delivery = Delivery::counted;
    options.per_thread = true;
    PROFILE(outcome, options, threads);
    CHECK(threads.tids.size() == 2);
    CHECK(outcome.ledger.adds_up());
}

TEST_CASE("profile events: a budget that can't be kept slows the clock down, and samples then count for more") {
    PLAIN_ONLY();
    struct Rates : Sum {
        using Sum::Sum;
        std::vector<double> rates;
        std::set<uint64_t> weights;
        Result<void> samples(std::span<const NamedSample> some) override {
            for (const NamedSample &sample : some) weights.insert(sample.weight);
            return Sum::samples(some);
        }
        void rate_changed(double hz, double) override { rates.push_back(hz); }
    } sum("split_body");
    ProfileOptions options = of("cpu-clock", 0, "split", 5000);
    options.frequency = 512;
    options.max_cpu = 1e-6; // less than reading the clock takes
    PROFILE(outcome, options, sum);
    CHECK(outcome.ledger.adds_up());
    if (sum.rates.empty() && std::getenv("RAWBPF_KERNEL")) SKIP("this emulated machine was done before the clock was slower");
    REQUIRE(!sum.rates.empty());
    CHECK(sum.rates.front() == 128);
    for (const double hz : sum.rates) CHECK(hz >= 8);
    CHECK(sum.weights.count(1) == 1);
    if (sum.weights.size() == 1 && std::getenv("RAWBPF_KERNEL"))
        SKIP("this emulated machine was done before the clock was slower");
    for (const uint64_t weight : sum.weights) CHECK((weight & (weight - 1)) == 0);
    CHECK(sum.weights.size() > 1);
    CHECK(sum.weight > sum.samples_);
    bool told = false;
    for (const std::string &warning : outcome.warnings) told |= warning.find("to stay within") != std::string::npos;
    CHECK(told);
}

TEST_CASE("profile events: what there isn't is refused, with what there is") {
    const auto error = [](const ProfileOptions &options) {
        Sum sum("");
        auto result = run_profile(options, sum);
        return result ? Error{} : result.error();
    };
    CHECK(error(of("page-fault", 0, "calls", 1)).kind == Errc::invalid_argument);
    CHECK(error(of("cpu-clock", 7, "calls", 1)).kind == Errc::invalid_argument);
    const Error none = error(of("tracepoint:sched:sched_swich", 0, "calls", 1));
    if (none.kind == Errc::permission || none.kind == Errc::unsupported) SKIP(none.message());
    CHECK(none.kind == Errc::not_found);
    CHECK(none.hint.find("sched_switch") != std::string::npos);
    CHECK(error(of("nowhere:sched_switch", 0, "calls", 1)).hint.find("sched/sched_switch") != std::string::npos);
}
