// Stacks of traced code without frame pointers, walked by tables: the same workloads as the profiler's (unwind_workload.h).
#include <cerrno>
#include <csignal>
#include <memory>
#include <set>
#include <unistd.h>

#include "programs/processes/following.h"
#include "programs/trace/tracer.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "tests/kernel/plain_only.h"
#include "tests/kernel/unwind_run.h"
#include "tests/kernel/unwind_workload.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::test;
using namespace rawbpf::trace;

namespace {

struct Stacks {
    std::vector<UnwoundStack> of;    ///< the events of one function
    std::set<std::string> functions; ///< that there were events of
    std::string missing;             ///< why there are none
};

std::string probe(std::string_view kind, std::string_view function) { return format("{}:/proc/self/exe:{}", kind, function); }

// Traces the workload, which is told to go on when its tables are there, until there are enough events of `function`.
Result<void> see(Stacks &out, const std::string &what, const std::vector<std::string> &probes, const std::string &function) {
    constexpr size_t kEnough = 40;
    sys::Child child = TRY(sys::Child::spawn(unwind_workload(what, 3000)));
    TRY(child.start());
    const struct Ends {
        sys::Child &child;
        ~Ends() {
            (void)child.kill(SIGKILL);
            (void)child.wait();
        }
    } ends{child}; // however this goes on
    const auto pid = static_cast<uint32_t>(child.pid());
    const std::string status = format("/proc/{}/stat", pid); // "PID (unwound) T ..."
    for (int tries = 0; tries < 5000 && sys::read_file(status).value_or("").find("(unwound) T") == std::string::npos; ++tries)
        usleep(2000);

    TraceOptions options;
    options.probes = probes;
    options.program.stack = true;
    options.copies = true;
    options.program.ring_bytes = 8 << 20;
    options.program.filters.pids = {pid};
    options.match.allow_unwind_risk = true; // nothing throws
    const auto tracer = Tracer::open(options);
    if (!tracer && tracer.error().kind == Errc::unsupported) {
        out.missing = tracer.error().message();
        return {};
    }
    if (!tracer) return Unexpected(in_context(Error(tracer.error()), tracer.error().log));
    if (!(*tracer)->unwinds()) {
        for (const std::string &note : (*tracer)->notes()) append(out.missing, "{} ", note);
        return {};
    }
    ProcessFiles files;
    TRY(files.read(pid));
    processes::Following following;
    TRY(following.unwind((*tracer)->object(), 64 << 20, *(*tracer)->unwinds()));
    TRY(following.watch(-1));
    TRY(following.want(pid));
    TRY(following.tick()); // it stands still: nothing can change meanwhile
    if (Result<void> attached = (*tracer)->attach(); !attached) {
        if (attached.error().kind != Errc::unsupported && attached.error().os != EPERM) return attached;
        out.missing = attached.error().message();
        return {};
    }
    TRY(child.kill(SIGCONT));
    const auto take = [&](const Event &event) {
        out.functions.insert(event.place->function);
        if (event.place->function != function || out.of.size() == kEnough) return;
        UnwoundStack stack;
        const Event::Stack user = event.user_stack();
        stack.flags = user.ending;
        stack.frames = user.frames;
        stack.name(files);
        out.of.push_back(std::move(stack));
    };
    for (bool ended = false; !ended && out.of.size() < kEnough;) {
        ended = TRY(child.poll()).has_value();
        TRY(following.tick([&] { (*tracer)->poll(take); }));
        usleep(5000);
    }
    return (*tracer)->finish(take);
}

Stacks stacks_of(const std::string &what, const std::vector<std::string> &probes, const std::string &function) {
    Stacks out;
    const Result<void> done = see(out, what, probes, function);
    REQUIRE_MESSAGE(done, done.error().message(), " ", done.error().log);
    return out;
}

} // namespace

TEST_CASE("trace unwind: at a function's first instruction, in code without frame pointers") {
    PLAIN_ONLY();
    const Stacks seen = stacks_of("recurse", {probe("uprobe", "uw_spin")}, "uw_spin");
    if (!seen.missing.empty()) SKIP("needs uprobes: " + seen.missing);
    REQUIRE(seen.of.size() >= 5);
    for (const UnwoundStack &stack : seen.of) {
        INFO(stack.text());
        CHECK(stack.flags == (UNWIND_ENDED_ROOT | UNWIND_TABLES));
        REQUIRE(stack.names.size() > 33);
        CHECK(stack.names[0] == "uw_spin");
        CHECK(stack.run(1, "uw_recurse") == 30);
        CHECK(stack.names[31] == "uw_case_recurse");
        CHECK(stack.names[32] == "uw_run");
    }
}

TEST_CASE("trace unwind: through functions whose returns are probed") {
    PLAIN_ONLY();
    const Stacks seen =
        stacks_of("twenty", {probe("uretprobe", "uw_recurse"), probe("uretprobe", "uw_case_twenty"), probe("uprobe", "uw_spin")},
                  "uw_spin");
    if (!seen.missing.empty()) SKIP("needs uprobes: " + seen.missing);
    REQUIRE(seen.of.size() >= 5);
    CHECK(seen.functions.count("uw_recurse") == 1);
    // Those that were called before it was attached have none pending, the others thirteen.
    for (const UnwoundStack &stack : seen.of) {
        INFO(stack.text());
        CHECK(stack.flags == (UNWIND_ENDED_ROOT | UNWIND_TABLES));
        REQUIRE(stack.names.size() > 15);
        CHECK(stack.names[0] == "uw_spin");
        CHECK(stack.run(1, "uw_recurse") == 13);
        CHECK(stack.names[14] == "uw_case_twenty");
        CHECK(stack.names[15] == "uw_run");
    }
}

TEST_CASE("trace unwind: where a function returns to") {
    PLAIN_ONLY();
    const Stacks seen = stacks_of("twenty", {probe("uretprobe", "uw_spin"), probe("uretprobe", "uw_recurse")}, "uw_spin");
    if (!seen.missing.empty()) SKIP("needs uprobes: " + seen.missing);
    REQUIRE(seen.of.size() >= 5);
    for (const UnwoundStack &stack : seen.of) {
        INFO(stack.text());
        CHECK(stack.flags == (UNWIND_ENDED_ROOT | UNWIND_TABLES));
        REQUIRE(stack.names.size() > 14);
        CHECK(stack.run(0, "uw_recurse") == 13);
        CHECK(stack.names[13] == "uw_case_twenty");
    }
}

TEST_CASE("trace unwind: of a thread that the kernel works for") {
    PLAIN_ONLY();
    const Stacks seen = stacks_of("system", {"tracepoint:syscalls:sys_enter_read"}, "sys_enter_read");
    if (!seen.missing.empty()) SKIP("needs tracepoints of system calls: " + seen.missing);
    REQUIRE(seen.of.size() >= 5);
    for (const UnwoundStack &stack : seen.of) {
        INFO(stack.text());
        CHECK(stack.flags == (UNWIND_ENDED_ROOT | UNWIND_TABLES));
        REQUIRE(stack.names.size() > 3);
        CHECK(stack.names[0] == "uw_read");
        CHECK(stack.names[1] == "uw_case_system");
        CHECK(stack.names[2] == "uw_run");
    }
}
