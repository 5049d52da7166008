// A clock that runs a BPF program.
//
//      perf_event_open(cpu clock, 99 Hz, CPU 3)  ->  event fd
//      bpf(BPF_LINK_CREATE, program, event)      ->  link fd      (5.15; before: ioctl PERF_EVENT_IOC_SET_BPF)
//      ioctl(event, PERF_EVENT_IOC_ENABLE)
//
// The software clock is an hrtimer on that CPU (kernel/events/core.c, perf_swevent_hrtimer): it works everywhere, also in
// virtual machines, and also ticks while the CPU is idle. The cycle counter needs a PMU, stops with the CPU, and interrupts by
// NMI, so it also samples code that has disabled interrupts. In both cases the kernel runs the program with the interrupted
// registers; the record goes nowhere else, since nobody maps a ring. precise_ip stays 0: with it the kernel refuses programs
// that read stacks (EPROTO).
#include "runtime/link/perf_event.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "runtime/base/fail.h"
#include "runtime/link/event.h"
#include "runtime/link/tracefs.h"
#include "runtime/sys/file.h"
#include "runtime/sys/hints.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

// A number from a file of /proc/sys; nullopt-like -1000 when it can't be read (perf_event_paranoid goes down to -1).
constexpr int64_t kUnknown = -1000;
int64_t sysctl_number(const std::string &path) {
    Result<std::string> text = sys::read_file(path, 4096);
    if (!text || text->empty()) return kUnknown;
    char *end = nullptr;
    long long value = strtoll(text->c_str(), &end, 10);
    return end == text->c_str() ? kUnknown : value;
}

// What perf_event_open's errno means for a sampling clock.
Error explain(Error error, const SamplingEvent &event) {
    switch (error.os) {
    case EINVAL: {
        constexpr const char *kLimit = "/proc/sys/kernel/perf_event_max_sample_rate";
        int64_t limit = sysctl_number(kLimit);
        if (event.period == 0 && limit != kUnknown && event.frequency > static_cast<uint64_t>(limit)) {
            error.kind = Errc::invalid_argument;
            error.context =
                format("sampling at {} Hz: this kernel's limit is {} Hz (perf_event_max_sample_rate)", event.frequency, limit);
            error.hint = format("use a lower frequency, or raise the limit: {}", kLimit);
            error.os = 0;
            return error;
        }
        Result<std::vector<int>> online = online_cpus();
        if (event.cpu >= 0 && online && std::find(online->begin(), online->end(), event.cpu) == online->end())
            error = make_error(Errc::not_found, format("CPU {} is not there, or offline", event.cpu));
        return error;
    }
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
        if (event.hardware && error.os != ENODEV) {
            error.kind = Errc::unsupported;
            error.context = "counting CPU cycles: " + error.context;
            error.hint = "there is no hardware counter (PMU) here, as in most virtual machines; the software clock, which is the "
                         "default, works without one";
        } else if (error.os == ENODEV) {
            error = make_error(Errc::not_found, format("CPU {} is not there, or offline", event.cpu));
        }
        return error;
    case EPERM:
    case EACCES: {
        error.kind = Errc::permission;
        if (error.hint.empty()) error.hint = sys::perf_hint(error.os);
        return error;
    }
    case ESRCH:
        error.kind = Errc::not_found;
        error.context = format("process {}: {}", event.pid, error.context);
        error.hint.clear();
        return error;
    default: return error;
    }
}

} // namespace

Result<PerfEventLink> PerfEventLink::open(const SamplingEvent &event, int program_fd) {
    if (event.frequency == 0 && event.period == 0) return fail(Errc::invalid_argument, "a sampling frequency of 0 Hz");
    if (event.pid < 0 && event.cpu < 0)
        return fail(Errc::invalid_argument, "a sampling event needs a process or a CPU: the kernel has none for both at once");

    sys::PerfEventAttr attr;
    attr.type = event.hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
    attr.config = event.hardware ? uint64_t{PERF_COUNT_HW_CPU_CYCLES} : uint64_t{event.software};
    attr.sample_period = event.period ? event.period : event.frequency;
    attr.bits = sys::kPerfDisabled | (event.period ? 0 : sys::kPerfFreq);
    if (event.inherit) attr.bits |= sys::kPerfInherit;
    if (event.enable_on_exec) attr.bits |= sys::kPerfEnableOnExec;

    PerfEventLink link;
    {
        sys::Because why(event.period     ? "events on one CPU; the kernel takes a sample at each N-th event"
                         : event.cpu >= 0 ? "the clock of one CPU; the kernel takes a sample at each tick"
                                          : "the clock of one thread, ticking while it runs");
        Result<Fd> fd = sys::perf_event_open(attr, event.pid, event.cpu);
        if (!fd) return Unexpected(explain(std::move(fd).error(), event));
        link.fd_ = std::move(*fd);
    }
    link.link_ = TRY_IN(run_on_event(link.fd_.get(), program_fd), "attaching the program to a perf event");
    return link;
}

Result<void> PerfEventLink::enable() const {
    sys::Because why("let it tick");
    return sys::perf_event_enable(fd_.get());
}

Result<void> PerfEventLink::disable() const {
    sys::Because why("no more ticks");
    return sys::perf_event_disable(fd_.get());
}

Result<void> PerfEventLink::set_period(uint64_t period) const {
    sys::Because why("from now on it ticks at another rate");
    return sys::perf_set_period(fd_.get(), period);
}

Result<uint64_t> PerfEventLink::count() const {
    uint64_t value = 0;
    size_t n = TRY_IN(sys::read(fd_.get(), &value, sizeof value), "reading a perf event's count");
    if (n != sizeof value) return fail(Errc::io, "reading a perf event's count: {} bytes instead of 8", n);
    return value;
}

Result<TracepointLink> TracepointLink::open(const std::string &name) {
    sys::PerfEventAttr attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = TRY(tracepoint_id(name));
    attr.sample_period = 1;
    attr.bits = sys::kPerfDisabled; // of the event; a program on it doesn't ask
    const std::vector<int> cpus = TRY(online_cpus());
    TracepointLink link;
    // Which CPU doesn't matter: the kernel runs a tracepoint's programs wherever it fires (perf_trace_run_bpf_submit).
    sys::Because why("the tracepoint as an event, for a program to run on");
    SamplingEvent any;
    any.cpu = cpus.empty() ? 0 : cpus.front();
    Result<Fd> fd = sys::perf_event_open(attr, -1, any.cpu);
    if (!fd) return Unexpected(in_context(explain(std::move(fd).error(), any), format("tracepoint {}", name)));
    link.fd_ = std::move(*fd);
    return link;
}

Result<void> TracepointLink::attach(int program_fd) {
    link_ = TRY_IN(run_on_event(fd_.get(), program_fd), "attaching the program to a tracepoint");
    return {};
}

void TracepointLink::detach() {
    // The last event of a tracepoint takes the kernel's function off it, and waits for all CPUs (perf_trace_event_unreg).
    sys::Because why("detach it; when this returns, no CPU runs the program any more");
    link_ = Fd();
    fd_ = Fd();
}

} // namespace rawbpf::inline v0
