// Custom traces against a kernel: a child calls so many times, and exactly so many come, each with its own thread's context.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asm/builder.h"
#include "programs/custom/run.h"
#include "runtime/base/format.h"
#include "runtime/kernel/tail_call.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/invoke.h"
#include "tests/kernel/custom_support.h"
#include "tests/support/fds.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::custom;
using rawbpf::test::Seen;
using rawbpf::test::traced;

TRACED void rawbpf_custom_report(uint64_t id) { __asm__ volatile("" : : "r"(id) : "memory"); }
// It calls itself: its caller is the same place each time but the first.
TRACED void rawbpf_custom_again(uint64_t depth) {
    if (depth) rawbpf_custom_again(depth - 1);
    __asm__ volatile("" : : "r"(depth) : "memory");
}
TRACED void rawbpf_custom_caller(uint64_t first, int calls) {
    for (int i = 0; i < calls; ++i) rawbpf_custom_report(first + static_cast<uint64_t>(i));
    __asm__ volatile("" : : : "memory");
}

namespace {

constexpr const char *kReport = "/proc/self/exe:rawbpf_custom_report";

// An external program as others write them: the context into custom_context_map, and away.
ObjectSpec per_cpu_external(uint32_t value_size = 8, const char *section = "uprobe", bool jumps = true) {
    Builder b("external");
    const MapRef contexts = b.map(BPF_MAP_TYPE_PERCPU_ARRAY, "custom_context_map", 4, value_size, 1);
    const MapRef programs = b.prog_array("prog_array", 1);
    Code &f = b.program(section, "example");
    const Slot zero = f.stack<uint32_t>("zero");
    const Label done = f.label("done");
    f.mov(r6, r1);
    f.store<uint32_t>(zero, 0);
    f.call(helper::map_lookup_elem, contexts, zero);
    f.jump_if(r0 == 0, done);
    if (std::string_view(section) == "uprobe")
        f.argument(r1, r6, 1);
    else
        f.mov(r1, 0);
    f.store<uint64_t>(r0, r1);
    if (jumps) f.call(helper::tail_call, r6, programs, 0);
    f.bind(done);
    f.ret(0);
    Built built = b.finish();
    REQUIRE_MESSAGE(built, built.report());
    return object_of(*built).value();
}

} // namespace

TEST_CASE("custom: a whole run is a call of the library, which tells what happens") {
    int go[2];
    REQUIRE(pipe(go) == 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        close(go[1]);
        if (read(go[0], &byte, 1) == 1) rawbpf_custom_caller(100, 3);
        _exit(0);
    }
    REQUIRE(child > 0);
    struct News final : RunNews {
        int attached_ = 0, over_ = 0, go = -1;
        size_t written = 1; // when everything was attached
        const std::string *out = nullptr;
        Result<void> attached(const CustomTracer &tracer) override {
            CHECK(!tracer.steps().empty());
            written = out->size();
            ++attached_;
            CHECK(write(go, "", 1) == 1);
            return {};
        }
        void over() override { ++over_; }
    };
    RunOptions options;
    options.target = kReport;
    options.observed.pids = {child};
    options.view.format = rendered("folded");
    options.command = {"a", "test"};
    std::string text;
    render::Writer writer(text);
    News news;
    news.go = go[1], news.out = &text;
    const Result<RunEnd> end = run_custom(std::move(options), writer, news);
    close(go[0]), close(go[1]); // a child that nobody has told to go sees the end
    REQUIRE(waitpid(child, nullptr, 0) == child);
    REQUIRE_MESSAGE(end.has_value(), (end ? std::string() : end.error().message()));
    CHECK(news.attached_ == 1);
    CHECK(news.over_ == 1);
    CHECK(news.written == 0);
    CHECK(end->finished.has_value());
    CHECK(end->ending == "the process has ended");
    CHECK(end->ledger.shown == 3);
    CHECK(end->ledger.adds_up());
    CHECK(end->totals.find("Total: 3") != std::string::npos);
    CHECK(end->run.command == std::vector<std::string>{"a", "test"});
    CHECK(text.find("rawbpf_custom_caller") != std::string::npos);

    RunOptions wrong;
    wrong.target = "/proc/self/exe:no_such_function_of_rawbpf";
    const Result<RunEnd> refused = run_custom(std::move(wrong), writer, news);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().kind == Errc::not_found);
    CHECK(news.attached_ == 1);
}

TEST_CASE("custom: five calls are five traces, with their contexts and their caller") {
    const auto before = test::open_descriptors();
    {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        CHECK(tracer.generic_program_fd() >= 0);
        CHECK(tracer.generic_program_fd(ProgramKind::tracepoint) == -1);
        REQUIRE(tracer.add_function(kReport).has_value());
        std::string why;
        const std::optional<Seen> seen = traced(
            tracer, [] { rawbpf_custom_caller(0x1000, 5); }, why);
        if (!seen) SKIP("needs uprobes: " + why);
        REQUIRE(seen->heads.size() == 5);
        for (uint64_t i = 0; i < 5; ++i) {
            CHECK(seen->heads[i].context == 4096 + i);
            CHECK(seen->heads[i].origin == Origin::custom);
            CHECK(seen->heads[i].flags == 0);
            CHECK(seen->heads[i].ending == 0); // by frame pointers, unless somebody asks for more
            REQUIRE(seen->stacks[i].size() >= 2);
            CHECK(seen->stacks[i][0] == "rawbpf_custom_report");
            CHECK(seen->stacks[i][1] == "rawbpf_custom_caller");
            CHECK(seen->hashes[i] == seen->hashes[0]);
        }
        CHECK(seen->counts.external == 5);
        CHECK(seen->counts.entered == 5);
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("custom: a function that calls itself has as many frames as calls") {
    OPEN_OR_SKIP(tracer, CustomOptions{});
    REQUIRE(tracer.add_function("/proc/self/exe:rawbpf_custom_again").has_value());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer, [] { rawbpf_custom_again(4); }, why);
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->stacks.size() == 5);
    for (size_t i = 0; i < 5; ++i) {
        const auto again = std::count(seen->stacks[i].begin(), seen->stacks[i].end(), "rawbpf_custom_again");
        CHECK(again == static_cast<long>(i) + 1);
        CHECK(seen->heads[i].context == 4 - i);
    }
}

TEST_CASE("custom: eight threads with ids of their own, sampled meanwhile: each trace has its own thread's") {
    constexpr int kThreads = 8, kCalls = 2000;
    CustomOptions options;
    options.sample_hz = 999;
    OPEN_OR_SKIP(tracer, options);
    REQUIRE(tracer.add_function(kReport).has_value());
    // Where each thread says what its ids are.
    auto *tids = static_cast<uint32_t *>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(tids != MAP_FAILED);
    std::string why;
    const std::optional<Seen> seen = traced(tracer,
                                            [&] {
                                                std::vector<std::thread> threads;
                                                for (int t = 0; t < kThreads; ++t)
                                                    threads.emplace_back([t, tids] {
                                                        tids[t] = static_cast<uint32_t>(syscall(SYS_gettid));
                                                        rawbpf_custom_caller(static_cast<uint64_t>(t) << 32, kCalls);
                                                    });
                                                for (std::thread &thread : threads) thread.join();
                                            },
                                            why, {.with_stacks = false});
    std::map<uint32_t, uint64_t> index;
    for (uint32_t t = 0; t < kThreads; ++t) index[tids[t]] = t;
    munmap(tids, 4096);
    if (!seen) SKIP("needs uprobes: " + why);
    CHECK(seen->counts.external == kThreads * kCalls);
    CHECK(seen->counts.external == seen->counts.entered + seen->counts.lost_tail_call + seen->counts.lost_context_map);
    CHECK(seen->counts.lost_context == 0);
    CHECK(seen->of(Origin::sampling) + seen->of(Origin::custom) == seen->heads.size());
    uint64_t wrong = 0;
    std::set<uint64_t> contexts;
    for (const Record &head : seen->heads) {
        if (head.origin != Origin::custom) continue;
        const auto thread = index.find(head.tid); // a pid namespace's numbers are the threads' own
        wrong += thread == index.end() || head.context >> 32 != thread->second;
        contexts.insert(head.context);
    }
    CHECK(wrong == 0);
    CHECK(contexts.size() == seen->of(Origin::custom)); // none twice
    CHECK(contexts.size() <= kThreads * kCalls);        // on a slow machine the ring can be full: traced() has the sum
}

TEST_CASE("custom: an external program of the seed's kind: per-CPU contexts, checked at context switches") {
    OPEN_OR_SKIP(tracer, CustomOptions{});
    ExternalOptions where;
    where.target = kReport;
    REQUIRE(tracer.load_external(per_cpu_external(), where).has_value());
    CHECK_FALSE(tracer.only_own());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer, [] { rawbpf_custom_caller(0x1000, 5); }, why);
    if (!seen) SKIP("needs uprobes: " + why);
    REQUIRE(seen->heads.size() + seen->counts.lost_context == 5);
    for (const Record &head : seen->heads) {
        CHECK(head.flags == kPerCpu);
        CHECK(head.context >= 4096);
        CHECK(head.context <= 4100);
    }
    if (!tracer.guarded()) SKIP("the guard needs raw tracepoints: " + tracer.notes().front());
}

TEST_CASE("custom: what a process and its threads waited for, and how long") {
    CustomOptions options;
    options.off_cpu = options.follow_only = true;
    OPEN_OR_SKIP(tracer, options);
    REQUIRE(tracer.add_function(kReport).has_value());
    std::string why;
    const std::optional<Seen> seen = traced(
        tracer,
        [] {
            // Some more than are asked for below: who is kept from its CPU for that long, before it sleeps, doesn't.
            std::thread sleeper([] {
                for (int i = 0; i < 5; ++i) usleep(20'000);
            });
            rawbpf_custom_caller(0x1000, 5);
            for (int i = 0; i < 10; ++i) usleep(20'000);
            sleeper.join();
        },
        why);
    if (!seen) SKIP("needs uprobes and tracepoints: " + why);
    CHECK(seen->of(Origin::custom) == 5);
    std::map<uint32_t, int> long_waits; // by thread
    std::set<uint32_t> pids;
    for (const Record &head : seen->heads) {
        pids.insert(head.pid);
        if (head.origin == Origin::off_cpu && head.context >= 15'000'000 && head.context < 10'000'000'000) ++long_waits[head.tid];
    }
    CHECK(pids.size() == 1);
    REQUIRE(long_waits.size() == 2);
    std::vector<int> waits{long_waits.begin()->second, long_waits.rbegin()->second};
    std::sort(waits.begin(), waits.end());
    CHECK(waits[0] >= 3);
    CHECK(waits[1] >= 7);
}

TEST_CASE("custom: contexts, jumps and rings that fail are counted") {
    SUBCASE("no context") {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        Builder b("external"); // forgets to store it
        const MapRef contexts = b.percpu_array<uint64_t>("custom_context_map", 1);
        const MapRef programs = b.prog_array("prog_array", 1);
        Code &f = b.program("uprobe", "example");
        const Slot zero = f.stack<uint32_t>("zero");
        f.mov(r6, r1);
        f.store<uint32_t>(zero, 0);
        f.call(helper::map_lookup_elem, contexts, zero);
        f.call(helper::tail_call, r6, programs, 0);
        f.ret(0);
        Built built = b.finish();
        REQUIRE_MESSAGE(built, built.report());
        REQUIRE(tracer.load_external(object_of(*built).value(), {kReport}).has_value());
        std::string why;
        const std::optional<Seen> seen = traced(
            tracer, [] { rawbpf_custom_caller(0x1000, 5); }, why);
        if (!seen) SKIP("needs uprobes: " + why);
        CHECK(seen->heads.empty());
        CHECK(seen->counts.lost_context == 5);
    }
    SUBCASE("nothing in the array") {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        uint32_t newest = 0;
        for (uint32_t id = 0; Result<uint32_t> next = sys::next_id(sys::ObjectKind::map, id);) newest = id = *next;
        REQUIRE(tracer.add_function(kReport).has_value());
        int emptied = 0;
        for (uint32_t id = newest; Result<uint32_t> next = sys::next_id(sys::ObjectKind::map, id);) {
            id = *next;
            Result<Fd> fd = sys::fd_by_id(sys::ObjectKind::map, id);
            if (!fd) continue;
            const Result<sys::MapInfo> info = sys::map_info(fd->get());
            const uint32_t slot = 0;
            if (!info || std::string_view(info->name) != "custom_programs") continue;
            REQUIRE(sys::map_delete_elem(fd->get(), &slot).has_value());
            ++emptied;
        }
        REQUIRE(emptied == 1);
        std::string why;
        const std::optional<Seen> seen = traced(
            tracer, [] { rawbpf_custom_caller(0x1000, 5); }, why);
        if (!seen) SKIP("needs uprobes: " + why);
        CHECK(seen->heads.empty());
        CHECK(seen->counts.external == 5);
        CHECK(seen->counts.lost_tail_call == 5);
        CHECK(seen->counts.entered == 0);
    }
    SUBCASE("a ring that nobody reads") {
        CustomOptions options;
        options.ring_bytes = 4096;
        OPEN_OR_SKIP(tracer, options);
        REQUIRE(tracer.add_function(kReport).has_value());
        std::string why;
        const std::optional<Seen> seen =
            traced(tracer, [] { rawbpf_custom_caller(0, 1000); }, why, {.with_stacks = false, .poll_meanwhile = false});
        if (!seen) SKIP("needs uprobes: " + why);
        CHECK(seen->counts.lost_ring_full > 0);
        CHECK(seen->heads.size() + seen->counts.lost_ring_full == 1000);
    }
}

TEST_CASE("custom: a clock that can't be stopped is told, and what waits isn't lost") {
    /// The kernel, but the first clock is refused.
    struct Refusing final : sys::Backend {
        Refusing() : before(sys::use_backend(this)) {}
        ~Refusing() override { sys::use_backend(before); }
        long call(const sys::Call &c) override {
            if (c.number == SYS_ioctl && c.args[1] == PERF_EVENT_IOC_DISABLE && ++asked == 1) return -EIO;
            return sys::kernel_backend().call(c);
        }
        int asked = 0;
        sys::Backend *before;
    };
    const auto work = [] {
        for (const uint64_t until = sys::monotonic_ns() + 50'000'000; sys::monotonic_ns() < until;) {
        }
    };
    CustomOptions options;
    options.sample_hz = 999;
    OPEN_OR_SKIP(tracer, options);
    if (Result<void> attached = tracer.attach(); !attached) SKIP("needs perf events: " + attached.error().message());
    work();
    const auto before = test::open_descriptors();
    uint64_t seen = 0;
    const auto report = [&](const CustomTrace &) { ++seen; };
    {
        Refusing kernel;
        const Result<void> finished = tracer.finish(report);
        REQUIRE_FALSE(finished);
        CHECK(finished.error().os == EIO);
        CHECK(kernel.asked == static_cast<int>(online_cpus().value().size())); // the others, too
    }
    CHECK(seen > 0);
    const Counts counts = tracer.counts().value();
    CHECK(counts.sampled == counts.lost_scratch + counts.lost_ring_full + counts.filtered + seen);
    CHECK(test::open_descriptors().size() < before.size()); // detached
    work();
    CHECK(tracer.poll(report) == 0);
    CHECK(tracer.counts().value().sampled == counts.sampled);
}

TEST_CASE("custom: what can't join is told why") {
    OPEN_OR_SKIP(tracer, CustomOptions{});
    const auto refused = [&](ObjectSpec spec, const std::string &target, std::string_view words) {
        ExternalOptions where;
        where.target = target;
        Result<void> done = tracer.load_external(std::move(spec), where);
        REQUIRE_FALSE(done.has_value());
        CHECK(done.error().kind == Errc::invalid_argument);
        const std::string text = done.error().message() + "\n" + done.error().hint;
        CHECK_MESSAGE(text.find(words) != std::string::npos, text);
    };
    refused(per_cpu_external(16), kReport, "values of 8 bytes, the programs were compiled for values of 16 bytes");
    refused(per_cpu_external(8, "uprobe", false), kReport, "no program of it jumps through a prog array");
    refused(per_cpu_external(8, "raw_tp/sched_switch"), "",
            "there is no generic program of its type, BPF_PROG_TYPE_RAW_TRACEPOINT");
    ObjectSpec other = per_cpu_external();
    other.maps[0].name = "contexts";
    refused(std::move(other), kReport, "it has neither of the maps for contexts");
    CHECK(tracer.add_function(kReport, 20).error().message().find("argument 20") != std::string::npos);
    REQUIRE(tracer.load_external(per_cpu_external()).has_value()); // its section doesn't say where, and nobody else does
    const Result<void> attached = tracer.attach();
    REQUIRE_FALSE(attached.has_value());
    CHECK(attached.error().message().find("its section doesn't say where it belongs") != std::string::npos);
}

TEST_CASE("custom: an object of programs without a generic one is told so, too") {
    CustomOptions options;
    options.kinds = kinds_of(per_cpu_external(8, "raw_tp/sched_switch"));
    CHECK(options.kinds.empty());
    OPEN_OR_SKIP(tracer, options);
    const Result<void> done = tracer.load_external(per_cpu_external(8, "raw_tp/sched_switch"));
    REQUIRE_FALSE(done.has_value());
    CHECK_MESSAGE(done.error().message().find("BPF_PROG_TYPE_RAW_TRACEPOINT") != std::string::npos, done.error().message());
}

TEST_CASE("custom: pins are there while the tracer is, and are the same objects") {
    struct statfs fs {};
    if (statfs("/sys/fs/bpf", &fs) != 0 || fs.f_type != 0xcafe4a11) SKIP("needs a bpf file system at /sys/fs/bpf");
    const std::string directory = "/sys/fs/bpf/rawbpf-custom-" + std::to_string(getpid());
    {
        OPEN_OR_SKIP(tracer, CustomOptions{});
        REQUIRE(tracer.pin(directory).has_value());
        const auto id_of = [](int fd) { return sys::map_info(fd).value().id; };
        CHECK(id_of(sys::obj_get(directory + "/custom_context_map").value().get()) == id_of(tracer.context_map_fd()));
        CHECK(id_of(sys::obj_get(directory + "/custom_context_by_thread").value().get()) ==
              id_of(tracer.thread_context_map_fd()));
        CHECK(sys::prog_info(sys::obj_get(directory + "/custom__generic").value().get()).value().id ==
              sys::prog_info(tracer.generic_program_fd()).value().id);
        const Result<void> again = (*CustomTracer::open(CustomOptions{}))->pin(directory);
        REQUIRE_FALSE(again.has_value());
        CHECK(again.error().kind == Errc::busy);
        CHECK(sys::obj_get(directory + "/custom__generic").has_value()); // the first one's are left alone
    }
    struct stat st {};
    CHECK(stat(directory.c_str(), &st) != 0);
    OPEN_OR_SKIP(tracer, CustomOptions{});
    CHECK(tracer.pin("/tmp/rawbpf-custom-no-bpf").error().kind == Errc::invalid_argument);
    CHECK(stat("/tmp/rawbpf-custom-no-bpf", &st) != 0);
}
