// The profiler on this kernel, from options to ledger, profiling only what the tests start.
#include "programs/profile/profiler.h"

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <unistd.h>

#include "programs/profile/left_out.h"
#include "programs/profile/program.h"
#include "runtime/base/fail.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/plain_only.h"
#include "tests/kernel/profile_run.h"
#include "tests/kernel/profile_workload.h"
#include "tests/support/fds.h"
#include "tests/support/profile_in_c.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

/// Keeps all samples, whichever way they are delivered.
struct Keep : Sink {
    std::vector<CountedSample> all;
    useconds_t nap = 0; // a slow reader
    int starts = 0;
    Result<void> start(const RunInfo &) override {
        ++starts;
        return {};
    }
    Result<void> samples(std::span<const NamedSample> some) override {
        for (const NamedSample &sample : some) all.push_back({sample, 1});
        if (nap) usleep(nap);
        return {};
    }
    Result<void> stacks(std::span<const CountedSample> some) override {
        all.insert(all.end(), some.begin(), some.end());
        return {};
    }
    [[nodiscard]] uint64_t total() const {
        uint64_t sum = 0;
        for (const CountedSample &sample : all) sum += sample.count;
        return sum;
    }
    /// Samples with a function of that name anywhere in the user stack.
    [[nodiscard]] uint64_t in(std::string_view function) const {
        uint64_t sum = 0;
        for (const CountedSample &sample : all) {
            for (const FramePtr &frame : sample.sample.user) {
                if (frame->symbol.find(function) == std::string::npos) continue;
                sum += sample.count;
                break;
            }
        }
        return sum;
    }
};

uint64_t degraded(const Outcome &outcome, std::string_view wanted) {
    for (const auto &[reason, count] : outcome.ledger.degraded)
        if (reason == wanted) return count;
    return UINT64_MAX;
}

ProfileOptions for_workload(const std::string &what, int milliseconds) {
    ProfileOptions options;
    options.frequency = 999;
    options.workload = test::workload(what, milliseconds);
    return options;
}

/// Where the cgroup v2 hierarchy is mounted.
std::string cgroup_root() {
    std::string root = "/sys/fs/cgroup";
    const std::string mounts = sys::read_file("/proc/mounts").value_or("");
    if (size_t at = mounts.find("\ncgroup2 "); at != std::string::npos) {
        at += sizeof "\ncgroup2 " - 1;
        root = mounts.substr(at, mounts.find(' ', at) - at);
    }
    return root;
}

/// Notes, while a run is on, the ids of the programs that this process holds.
struct Look : Sink {
    std::vector<uint32_t> programs;
    Result<void> start(const RunInfo &) override {
        for (const std::string &fd : sys::list_directory("/proc/self/fdinfo").value_or(std::vector<std::string>{})) {
            const std::string info = sys::read_file("/proc/self/fdinfo/" + fd).value_or("");
            const size_t at = info.find("prog_id:");
            if (at != std::string::npos) programs.push_back(static_cast<uint32_t>(std::atoi(info.c_str() + at + 8)));
        }
        return {};
    }
};

} // namespace

TEST_CASE("profile: a process that isn't wanted is left out with its first sample") {
    MapSpec spec;
    spec.type = BPF_MAP_TYPE_HASH;
    spec.key_size = 4;
    spec.value_size = 1;
    spec.max_entries = profile::kMostLeftOut;
    const auto has = [](const Map &pids, uint32_t pid) {
        uint8_t value = 0;
        return pids.lookup(&pid, &value).has_value();
    };
    Result<Map> pids = Map::create(spec);
    if (!pids) SKIP("needs CAP_BPF");
    profile::LeftOut left_out;
    for (uint32_t pid = 1; pid <= 3; ++pid) left_out.met(*pids, pid);
    CHECK(has(*pids, 1));
    CHECK(has(*pids, 3));
    REQUIRE(left_out.update(*pids, [](uint32_t pid) { return pid == 3; }).has_value()); // the family's child has its number now
    CHECK(has(*pids, 1));
    CHECK_FALSE(has(*pids, 3));
    // One too many for the map: it starts anew.
    for (uint32_t pid = 1; pid <= profile::kMostLeftOut + 1; ++pid) left_out.met(*pids, pid);
    CHECK(has(*pids, profile::kMostLeftOut + 1));
    CHECK_FALSE(has(*pids, 1));
    CHECK(left_out.update(*pids, [](uint32_t) { return false; }).has_value());

    // What the kernel refuses isn't lost.
    spec.max_entries = 1;
    Map small = Map::create(spec).value();
    profile::LeftOut more;
    for (uint32_t pid = 1; pid <= 2; ++pid) more.met(small, pid);
    const Result<void> told = more.update(small, [](uint32_t) { return false; });
    REQUIRE_FALSE(told.has_value());
    CHECK(told.error().os == E2BIG);
}

TEST_CASE("profile: 75 % and 25 %, with the program in C and with the DSL's") {
    PLAIN_ONLY();
    int ran = 0;
    const std::optional<ObjectSpec> in_c = test::profile_in_c();
    for (const ObjectSpec *program : {in_c ? &*in_c : nullptr, static_cast<const ObjectSpec *>(nullptr)}) {
        for (Delivery delivery : {Delivery::each, Delivery::counted}) {
            ProfileOptions options = for_workload("split", 1500);
            options.program = program;
            options.delivery = delivery;
            double a = 0, b = 0;
            for (int tries = 0; a + b <= 300 && tries < 8; ++tries) { // one gives 1500, fewer where the machine is emulated
                Keep sink;
                PROFILE(outcome, options, sink);
                ++ran;
                a += static_cast<double>(sink.in("hot_a"));
                b += static_cast<double>(sink.in("hot_b"));
                CHECK(sink.in("split_body") * 10 >= (sink.in("hot_a") + sink.in("hot_b")) * 9);
                CHECK(outcome.ledger.adds_up());
                CHECK(test::lost(outcome) == 0);
                CHECK(outcome.ledger.shown == sink.total());
                CHECK(outcome.workload_status == "exited with status 0");
                CHECK(sink.starts == 1);
                CHECK(outcome.cost.bpf_runs == outcome.ledger.fired);
                CHECK(outcome.cost.rss_anon_bytes > 0);
            }
            REQUIRE(a + b > 300);
            // Four standard deviations of a share of n samples, and one point for what the two functions don't do alike.
            const double share = 100 * a / (a + b), deviation = 100 * std::sqrt(0.75 * 0.25 / (a + b));
            CHECK(std::abs(share - 75) < 4 * deviation + 1);
        }
    }
    CHECK(ran > 0);
}

TEST_CASE("profile: processes of 20 ms keep their names") {
    ProfileOptions options = for_workload("short", 0);
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        options.delivery = delivery;
        Keep sink;
        PROFILE(outcome, options, sink);
        std::set<uint32_t> pids;
        uint64_t burst = 0, named = 0;
        for (const CountedSample &sample : sink.all) {
            if (sample.sample.comm != "burst" || sample.sample.user.empty()) continue;
            pids.insert(sample.sample.pid);
            burst += sample.count;
            if (!sample.sample.user[0]->module.empty() && !sample.sample.user[0]->symbol.empty()) named += sample.count;
        }
        CHECK(pids.size() >= 15);
        REQUIRE(burst > 20); // of some 400, fewer where the machine is emulated
        CHECK(named * 100 >= burst * 95);
        CHECK(sink.in("burst_body") * 100 >= burst * 50); // the rest starts up and ends
        CHECK(outcome.ledger.adds_up());
    }
}

TEST_CASE("profile: many that work for a moment each are seen as often as one that works as long") {
    PLAIN_ONLY();
    // 600 ms of CPU time each at 199 Hz: some 119 samples, with a deviation of 11. No thread or child lives through a period. Not
    // many more either: they take a moment more than 2 ms each, and on an emulated machine that moment is long, but never can
    // there be more samples than ticks of the clock.
    const auto ticks = [](const Outcome &outcome) {
        const uint64_t cpus =
            std::min<uint64_t>(outcome.run.cpus, 2); // the children follow each other; two threads overlap at times
        return std::max<uint64_t>(240, outcome.elapsed_ns / 1000 * 199 / 1'000'000 * cpus * 6 / 5);
    };
    ProfileOptions options = for_workload("crumbs", 600);
    options.frequency = 199;
    Keep children;
    PROFILE(outcome, options, children);
    CHECK(children.in("crumb_body") > 40); // where the clock gives a third of its ticks; perf's own inheritance shows none
    CHECK(children.in("crumb_body") < ticks(outcome));
    CHECK(outcome.ledger.adds_up());
    CHECK(test::lost(outcome) == 0);

    options.unwind = UnwindBy::fp; // before bpf_loop tables take a slow machine seconds, and it runs already
    auto napping = sys::Child::spawn(test::workload("naps", 2000));
    REQUIRE(napping);
    REQUIRE(napping->start());
    options.workload.clear();
    options.pids = {napping->pid()};
    Keep threads;
    auto done = run_profile(options, threads); // until it ends
    REQUIRE(done);
    CHECK(threads.in("crumb_body") > 24); // a third has passed where it takes longer than their first nap until all is attached
    CHECK(threads.in("crumb_body") < ticks(*done));
    for (const CountedSample &sample : threads.all) REQUIRE(static_cast<int>(sample.sample.pid) == napping->pid());
    CHECK(done->ledger.adds_up());
    (void)napping->wait();
}

TEST_CASE("profile: a workload's orphans belong to it, others don't, and a first thread's end isn't its process's") {
    auto stranger = sys::Child::spawn(test::workload("split", 30000));
    REQUIRE(stranger);
    REQUIRE(stranger->start());
    ProfileOptions options = for_workload("orphan", 600);
    Keep sink;
    PROFILE(outcome, options, sink);
    (void)stranger->kill(SIGKILL);
    (void)stranger->wait();
    std::set<uint32_t> workers;
    for (const CountedSample &sample : sink.all) {
        CHECK(static_cast<int>(sample.sample.pid) != stranger->pid());
        for (const FramePtr &frame : sample.sample.user)
            if (frame->symbol.find("worker_body") != std::string::npos) workers.insert(sample.sample.pid);
    }
    CHECK(workers.size() == 2);
    CHECK(outcome.ledger.filtered > 100); // the stranger's
    CHECK(outcome.ledger.adds_up());
    CHECK(test::lost(outcome) == 0);
}

TEST_CASE("profile: threads of the workload are profiled, and end where threads begin") {
    ProfileOptions options = for_workload("threads", 500);
    Keep sink;
    PROFILE(outcome, options, sink);
    std::set<uint32_t> tids;
    for (const CountedSample &sample : sink.all) {
        for (const FramePtr &frame : sample.sample.user)
            if (frame->symbol.find("worker_body") != std::string::npos) tids.insert(sample.sample.tid);
    }
    CHECK(tids.size() == 2);
    CHECK(outcome.ledger.adds_up());
}

TEST_CASE("profile: by process, children that it forks are filtered and counted") {
    auto child = sys::Child::spawn(test::workload("forks", 20000));
    REQUIRE(child);
    REQUIRE(child->start());
    usleep(800000); // both are at work, sanitized ones on a busy machine too
    ProfileOptions options;
    options.frequency = 999;
    options.duration_s = 0.5;
    options.unwind = UnwindBy::fp; // as above
    options.pids = {child->pid()};
    options.children = false;
    Keep sink;
    PROFILE(outcome, options, sink);
    REQUIRE(sink.total() > 30);
    for (const CountedSample &sample : sink.all) REQUIRE(static_cast<int>(sample.sample.pid) == child->pid());
    CHECK(sink.in("worker_body") * 10 > sink.total() * 8); // it was there before us: its maps come from /proc
    CHECK(outcome.ledger.adds_up());
    CHECK(test::lost(outcome) == 0);
    CHECK(!outcome.workload_status);
    CHECK(outcome.elapsed_ns > 400'000'000);
    (void)child->kill(SIGKILL);
    (void)child->wait();

    // When the process given ends, so does the run.
    auto brief = sys::Child::spawn({"sleep", "0.3"});
    REQUIRE(brief);
    REQUIRE(brief->start());
    options.pids = {brief->pid()};
    options.duration_s = 30;
    Keep nothing;
    auto done = run_profile(options, nothing);
    REQUIRE(done);
    CHECK(done->elapsed_ns < 30'000'000'000); // the duration wasn't waited for
    (void)brief->wait();
}

TEST_CASE("profile: the ledger adds up when the ring is tiny and its reader asleep") {
    ProfileOptions options = for_workload("split", 600);
    options.frequency = 4999;
    options.ring_bytes = sys::page_size();
    Keep sink;
    sink.nap = 150000;
    PROFILE(outcome, options, sink);
    CHECK(test::lost(outcome) > 0);
    CHECK(outcome.ledger.shown > 0);
    CHECK(outcome.ledger.shown == sink.total());
    CHECK(outcome.ledger.adds_up());
}

TEST_CASE("profile: kernel stacks lie under system calls, and can be left out") {
    ProfileOptions options = for_workload("system", 1000); // the sanitized workload takes 150 ms to start
    options.delivery = Delivery::counted;
    Keep both;
    PROFILE(outcome, options, both);
    uint64_t kernel = 0, named = 0;
    for (const CountedSample &sample : both.all) {
        if (sample.sample.kernel.empty()) continue;
        kernel += sample.count;
        if (!sample.sample.kernel[0]->symbol.empty()) named += sample.count;
    }
    CHECK(kernel * 2 > outcome.ledger.shown);
    CHECK(both.in("run_workload") * 2 > outcome.ledger.shown);
    if (named == 0) {
        bool told = false;
        for (const std::string &warning : outcome.warnings) told |= warning.find("kernel functions") != std::string::npos;
        CHECK(told); // hidden from us, and said so
    } else {
        CHECK(named * 10 > kernel * 9);
    }
    options.kernel_stacks = false;
    Keep user;
    REQUIRE(run_profile(options, user));
    for (const CountedSample &sample : user.all) CHECK(sample.sample.kernel.empty());
    CHECK(user.in("run_workload") > 0);
    options.kernel_stacks = true;
    options.user_stacks = false;
    Keep kernel_only;
    auto done = run_profile(options, kernel_only);
    REQUIRE(done);
    for (const CountedSample &sample : kernel_only.all) CHECK(sample.sample.user.empty());
    CHECK(degraded(*done, "user_stack_unreadable") == 0); // not wanted isn't missing
}

TEST_CASE("profile: code made at run time is named by its perf map") {
    for (Delivery delivery : {Delivery::each, Delivery::counted}) {
        ProfileOptions options = for_workload("jit", 1500);
        options.delivery = delivery;
        Keep sink;
        PROFILE(outcome, options, sink);
        CHECK(sink.in("script:hot_loop") * 10 > sink.total() * 6); // the rest starts up, which takes long where it is emulated
        for (const CountedSample &sample : sink.all) unlink(format("/tmp/perf-{}.map", sample.sample.pid).c_str());
        CHECK(outcome.ledger.adds_up());
    }
}

TEST_CASE("profile: a capture reports the same as the run would have shown") {
    for (const char *what : {"split", "jit"}) {
        const int fd = memfd_create("capture", MFD_CLOEXEC);
        REQUIRE(fd >= 0);
        ProfileOptions options = for_workload(what, 500);
        options.record_fd = fd;
        options.delivery = Delivery::each; // shown and recorded, so that both can be compared
        options.command = {"rawbpf", "profile"};
        Keep live;
        PROFILE(outcome, options, live);
        auto capture = sys::map_file(format("/proc/self/fd/{}", fd));
        REQUIRE(capture);
        for (const CountedSample &sample : live.all) unlink(format("/tmp/perf-{}.map", sample.sample.pid).c_str());

        Keep again;
        auto report = report_capture(capture->bytes(), "capture", {}, again);
        REQUIRE_MESSAGE(report, report.error().message());
        REQUIRE(again.all.size() == live.all.size());
        size_t different = 0;
        for (size_t i = 0; i < live.all.size(); ++i) {
            const NamedSample &a = live.all[i].sample, &b = again.all[i].sample;
            bool same = a.wall_ns == b.wall_ns && a.tid == b.tid && a.comm == b.comm && a.user.size() == b.user.size() &&
                        a.kernel.size() == b.kernel.size();
            for (size_t f = 0; same && f < a.user.size(); ++f)
                same = a.user[f]->symbol == b.user[f]->symbol && a.user[f]->address == b.user[f]->address &&
                       a.user[f]->module == b.user[f]->module && a.user[f]->build_id == b.user[f]->build_id;
            for (size_t f = 0; same && f < a.kernel.size(); ++f) same = a.kernel[f]->symbol == b.kernel[f]->symbol;
            different += !same;
        }
        CHECK(different == 0);
        CHECK(report->ledger.fired == outcome.ledger.fired);
        CHECK(report->ledger.adds_up());
        CHECK(report->run.command.size() == 2);
        CHECK(report->run.start_wall_ns == outcome.run.start_wall_ns);
        close(fd);
    }
}

TEST_CASE("profile: CPUs, duration, a stop from outside, the byte that says ready") {
    ProfileOptions options;
    options.frequency = 499;
    options.cpus = {0};
    options.duration_s = 1;
    options.idle = true;
    Keep sink;
    int ready[2];
    REQUIRE(pipe2(ready, O_CLOEXEC | O_NONBLOCK) == 0);
    options.ready_fd = ready[1];
    PROFILE(outcome, options, sink);
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(outcome.elapsed_ns >= 1'000'000'000); // how much more depends on the machine: its functions are named within it
    CHECK(outcome.ledger.fired > 50);           // with --idle also on an idle machine
    CHECK(outcome.ledger.filtered == 0);
    for (const CountedSample &sample : sink.all) CHECK(sample.sample.cpu == 0);
    CHECK(outcome.ledger.adds_up());

    static volatile std::sig_atomic_t stop;
    stop = 1;
    options.duration_s = 60;
    options.stop = &stop;
    options.idle = false;
    Keep short_run;
    auto stopped = run_profile(options, short_run);
    REQUIRE(stopped);
    CHECK(stopped->elapsed_ns < 60'000'000'000); // the duration wasn't waited for
    close(ready[0]);
    close(ready[1]);
}

TEST_CASE("profile: a workload that outlives the duration is told to end") {
    ProfileOptions options = for_workload("split", 60000);
    options.duration_s = 0.2;
    Keep sink;
    PROFILE(outcome, options, sink);
    CHECK(outcome.workload_status == "was killed by SIGTERM");
    CHECK(outcome.ledger.adds_up());
}

TEST_CASE("profile: a cgroup's processes only") {
    const std::string path = format("{}/rawbpf-test-{}", cgroup_root(), getpid());
    if (mkdir(path.c_str(), 0755) != 0) SKIP("needs a writable cgroup v2 hierarchy");
    auto inside = sys::Child::spawn(test::workload("split", 6000)), outside = sys::Child::spawn(test::workload("split", 6000));
    REQUIRE(inside);
    REQUIRE(outside);
    const int procs = open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    const std::string pid = std::to_string(inside->pid());
    const bool moved = procs >= 0 && write(procs, pid.data(), pid.size()) > 0;
    if (procs >= 0) close(procs);
    REQUIRE(inside->start());
    REQUIRE(outside->start());
    ProfileOptions options;
    options.frequency = 499;
    options.duration_s = 2;
    options.cgroup = path;
    Keep sink;
    auto result =
        moved ? run_profile(options, sink) : Result<Outcome>(fail(Errc::unsupported, "can't move a process into {}", path));
    for (auto *child : {&*inside, &*outside}) {
        (void)child->kill(SIGKILL);
        (void)child->wait();
    }
    rmdir(path.c_str());
    if (!result && test::unable(result.error())) SKIP(result.error().message());
    REQUIRE_MESSAGE(result, result.error().message());
    CHECK(sink.total() > 20);
    for (const CountedSample &sample : sink.all) CHECK(static_cast<int>(sample.sample.pid) == inside->pid());
    CHECK(result->ledger.filtered > 0);
    CHECK(result->ledger.adds_up());
    options.cgroup = "/etc";
    CHECK(!run_profile(options, sink));
}

TEST_CASE("profile: what can't be is refused, naming what it was") {
    const auto error = [](ProfileOptions options) {
        Keep sink;
        auto result = run_profile(options, sink);
        return result ? Error{} : result.error();
    };
    ProfileOptions options;
    options.pids = {999999999};
    CHECK(error(options).kind == Errc::not_found);
    CHECK(error(options).context.find("999999999") != std::string::npos);
    options = {};
    options.workload = {"no-such-program-anywhere"};
    CHECK(error(options).kind == Errc::not_found);
    options = {};
    options.kernel_stacks = options.user_stacks = false;
    CHECK(error(options).kind == Errc::invalid_argument);
    options = {};
    options.cpus = {4095};
    CHECK(error(options).context.find("4095") != std::string::npos);
    options = {};
    options.frequency = 1'000'000'000;
    options.duration_s = 0.1;
    const Error too_fast = error(options);
    if (test::unable(too_fast)) SKIP(too_fast.message());
    CHECK(too_fast.kind == Errc::invalid_argument);
    CHECK(too_fast.message().find("max_sample_rate") != std::string::npos);
}

TEST_CASE("profile: an error of the sink ends the run and is handed on") {
    struct Full : Sink {
        Result<void> samples(std::span<const NamedSample>) override { return fail(Errc::io, "the disk is full"); }
    } sink;
    ProfileOptions options = for_workload("split", 300);
    auto result = run_profile(options, sink);
    REQUIRE(!result);
    if (test::unable(result.error())) SKIP(result.error().message());
    CHECK(result.error().kind == Errc::io);
}

TEST_CASE("profile: nothing stays behind") {
    const auto descriptors = test::open_descriptors();
    ProfileOptions options = for_workload("split", 200);
    Look sink;
    {
        PROFILE(outcome, options, sink);
        CHECK(outcome.ledger.shown > 0);
    }
    CHECK(test::open_descriptors() == descriptors);
    REQUIRE(!sink.programs.empty());
    for (uint32_t id : sink.programs) {
        bool gone = false;
        for (int i = 0; i < 200 && !gone; ++i) { // programs are freed a grace period later
            gone = !sys::fd_by_id(sys::ObjectKind::program, id);
            if (!gone) usleep(10000);
        }
        CHECK_MESSAGE(gone, id);
    }
}
