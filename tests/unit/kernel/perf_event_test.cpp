// Clocks against a fake kernel: what old kernels and refusals make of them.
#include "runtime/link/perf_event.h"

#include <cerrno>

#include "runtime/kernel/probes.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"

using namespace rawbpf;
using test::FakeKernel;

namespace {
SamplingEvent on_cpu_0() {
    SamplingEvent event;
    event.cpu = 0;
    return event;
}
Error refusal(int os, const SamplingEvent &event = on_cpu_0()) {
    FakeKernel kernel;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number == __NR_perf_event_open) return -os;
        return {};
    };
    Error error = PerfEventLink::open(event, 5).error();
    CHECK(kernel.leaks() == "");
    return error;
}
} // namespace

TEST_CASE("perf link: each errno of perf_event_open is explained") {
    SamplingEvent cycles = on_cpu_0();
    cycles.hardware = true;
    for (int os : {ENOENT, EOPNOTSUPP}) {
        Error none = refusal(os, cycles);
        CHECK(none.kind == Errc::unsupported);
        CHECK(none.hint.find("software clock") != std::string::npos);
    }
    for (int os : {EPERM, EACCES}) {
        Error short_of = refusal(os);
        CHECK(short_of.kind == Errc::permission);
        CHECK(short_of.hint.find("CAP_PERFMON") != std::string::npos);
    }
    SamplingEvent gone;
    gone.pid = 4711;
    Error dead = refusal(ESRCH, gone);
    CHECK(dead.kind == Errc::not_found);
    CHECK(dead.message() == "process 4711: perf_event_open: No such process (ESRCH)");
    CHECK(refusal(ENODEV).message() == "CPU 0 is not there, or offline");
    SamplingEvent fast = on_cpu_0();
    fast.frequency = 1'000'000'000;
    Error limit = refusal(EINVAL, fast);
    CHECK(limit.kind == Errc::invalid_argument);
    CHECK(limit.message().find("perf_event_max_sample_rate") != std::string::npos);
    CHECK(refusal(EMFILE).hint.find("ulimit -n") != std::string::npos);
}

TEST_CASE("perf link: the link is closed before the event, both with their owner") {
    forget_features();
    FakeKernel kernel;
    {
        PerfEventLink link = PerfEventLink::open(on_cpu_0(), 5).value();
        CHECK(kernel.count(BPF_LINK_CREATE) == 1);
        CHECK(link.enable().has_value());
        CHECK(link.disable().has_value());
        PerfEventLink moved = std::move(link);
        CHECK(moved.fd() >= 0);
    }
    CHECK(kernel.leaks() == "");
    // A program that can't be attached leaves no event behind.
    kernel.refuse(BPF_LINK_CREATE, EPERM);
    Error error = PerfEventLink::open(on_cpu_0(), 5).error();
    CHECK(error.kind == Errc::permission);
    CHECK(error.message().find("attaching the program") != std::string::npos);
    CHECK(kernel.leaks() == "");
}

TEST_CASE("perf link: before 5.15 the ioctl attaches, and the link isn't tried again") {
    forget_features();
    FakeKernel kernel;
    kernel.refuse(BPF_LINK_CREATE, EINVAL);
    int attached = 0, refuse = 1;
    kernel.script = [&](const sys::Call &c) -> std::optional<long> {
        if (c.number != __NR_ioctl || c.args[1] != PERF_EVENT_IOC_SET_BPF) return {};
        CHECK(c.args[2] == 5);
        if (refuse-- > 0) return -EINVAL; // not a program for perf events: that says nothing about links
        ++attached;
        return 0;
    };
    CHECK(PerfEventLink::open(on_cpu_0(), 5).error().os == EINVAL);
    CHECK(PerfEventLink::open(on_cpu_0(), 5).has_value());
    CHECK(kernel.count(BPF_LINK_CREATE) == 2);
    CHECK(PerfEventLink::open(on_cpu_0(), 5).has_value());
    CHECK(kernel.count(BPF_LINK_CREATE) == 2);
    CHECK(attached == 2);
    CHECK(kernel.leaks() == "");
    forget_features();
}
