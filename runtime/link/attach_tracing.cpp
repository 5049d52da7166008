// Tracepoints, raw tracepoints, trampolines (fentry and its kin, LSM, tp_btf, freplace) and iterators.
//
//      tracepoint     perf_event_open(PERF_TYPE_TRACEPOINT, id), the program on the event       arguments as tracefs lists them
//      raw_tp         BPF_RAW_TRACEPOINT_OPEN "sched_switch"                                    the kernel's own arguments
//      trampoline     BPF_RAW_TRACEPOINT_OPEN without a name: the verifier has seen the target  ... with types
//      with a cookie  BPF_LINK_CREATE, tracing.cookie (5.19; raw and BTF tracepoints 6.10)
//      iterator       BPF_LINK_CREATE; runs when a descriptor made by BPF_ITER_CREATE is read
//
// What the errors mean is worked out from kernel/bpf/syscall.c (bpf_tracing_prog_attach, bpf_raw_tp_link_attach): ENOENT no such
// tracepoint, EBUSY fmod_ret's or freplace's place is taken, 524 (ENOTSUPP) no trampolines on this architecture, E2BIG too many
// programs on one function (38).
#include <cerrno>

#include "runtime/base/fail.h"
#include "runtime/link/attaching.h"
#include "runtime/link/event.h"
#include "runtime/link/names.h"
#include "runtime/link/tracefs.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/facts.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/perf.h"

namespace rawbpf::inline v0 {
namespace {

constexpr int kNotSupported = 524; // ENOTSUPP: leaks out of the kernel, though no header of user space has it

Unexpected explain_trampoline(const Attaching &a, Error error) {
    switch (error.os) {
    case kNotSupported:
    case EOPNOTSUPP:
        error.kind = Errc::unsupported;
        error.hint =
            "the kernel makes no BPF trampoline there (arm64 has them since Linux 6.4; rawbpf doctor shows this under fentry)";
        break;
    case EBUSY:
        error.hint =
            a.kind.attachment == Attachment::replace
                ? "the function is replaced already, or programs are attached to it"
                : "the entry of the function is in use: by a kprobe, by ftrace, or by another program that changes its result";
        break;
    case E2BIG: error.hint = "one function takes at most 38 programs"; break;
    case EPERM:
    case EACCES:
        error.kind = Errc::permission;
        error.hint = sys::refusal_hint({sys::Capability::bpf, sys::Capability::perfmon});
        break;
    default: break;
    }
    return Unexpected(in_context(std::move(error), a.what()));
}

std::string nearest_raw_tracepoint(const std::string &wanted) {
    NearestNames near(wanted);
    Result<std::string> root = tracefs();
    if (!root) return {};
    std::string events = *root + "/events";
    for (const std::string &category : sys::list_directory(events).value_or(std::vector<std::string>{})) {
        if (category == "syscalls") continue; // those have no raw tracepoint of their own: sys_enter and sys_exit
        for (const std::string &name : sys::list_directory(events + "/" + category).value_or(std::vector<std::string>{}))
            near.see(name);
    }
    return near.hint();
}

} // namespace

Unexpected no_cookie(const Attaching &a, std::string_view since) {
    return Unexpected(make_error(Errc::unsupported, format("{}: a cookie for it needs Linux {}", a.what(), since),
                                 "use a separate program for each place, or bpf_get_func_ip() to tell the places apart"));
}

sys::LinkCreateAttr link_attr(const Attaching &a) {
    sys::LinkCreateAttr attr;
    attr.prog_fd = static_cast<uint32_t>(a.program_fd());
    attr.attach_type = a.program.expected_attach_type;
    return attr;
}

Result<Link> attach_tracepoint(const Attaching &a) {
    sys::PerfEventAttr attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = TRY(tracepoint_id(a.target));
    attr.sample_period = 1;
    Fd event;
    {
        // Which CPU doesn't matter: the kernel runs a tracepoint's programs wherever it fires (perf_trace_run_bpf_submit).
        sys::Because why("the tracepoint as an event, for a program to run on");
        event = TRY_IN(sys::perf_event_open(attr, -1, 0), "{}", a.what());
    }
    Result<Fd> link = run_on_event(event.get(), a.program_fd(), a.options.cookie);
    if (!link) {
        Error error = in_context(std::move(link).error(), a.what());
        if (error.os == EACCES) { // the verifier doesn't know the record: perf_event_set_bpf_prog() compares
            const uint64_t size = tracepoint_record_size(a.target);
            error.hint = format("the kernel refuses a program that reads past the end of the tracepoint's record{}: compare the "
                                "offsets that it reads with /sys/kernel/tracing/events/{}/format",
                                size ? format(", which has {} bytes", size) : std::string(), a.target);
        }
        return Unexpected(std::move(error));
    }
    TRY_IN(sys::perf_event_enable(event.get()), "{}", a.what());
    Link out;
    out.add(std::move(*link), std::move(event), true);
    return out;
}

Result<Link> attach_raw_tracepoint(const Attaching &a) {
    sys::Because why("run this program at the tracepoint, with the kernel's own arguments");
    Result<Fd> link = sys::raw_tracepoint_open(a.target, a.program_fd(), a.options.cookie);
    if (link) return Link({}, std::move(*link));
    Error error = std::move(link).error();
    if (error.os == ENOENT) {
        error = make_error(Errc::not_found, format("{}: no such tracepoint in this kernel", a.what()),
                           nearest_raw_tracepoint(a.target));
        return Unexpected(std::move(error));
    }
    if (error.os == EINVAL && a.program.type == BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE)
        error.hint = "the tracepoint has no writable data, or less than the program writes";
    if (a.options.cookie != 0 && (error.os == EINVAL || error.os == E2BIG) && sys::raw_tracepoint_open(a.target, a.program_fd()))
        return no_cookie(a, "6.10");
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_trampoline(const Attaching &a) {
    if (a.options.cookie == 0) {
        sys::Because why("the load named the function that it is for; from now on it runs there");
        Result<Fd> link = sys::raw_tracepoint_open("", a.program_fd());
        if (!link) return explain_trampoline(a, std::move(link).error());
        return Link({}, std::move(*link));
    }
    sys::LinkCreateAttr attr = link_attr(a);
    attr.tracing.cookie = a.options.cookie;
    sys::Because why("run this program there, with a cookie: a number that the program can read");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link({}, std::move(*link));
    Error error = std::move(link).error();
    // A kernel without cookies here has no BPF_LINK_CREATE for these programs either: whether the old way works tells it.
    if ((error.os == EINVAL || error.os == E2BIG) && sys::raw_tracepoint_open("", a.program_fd()))
        return no_cookie(a, a.program.expected_attach_type == BPF_TRACE_RAW_TP ? "6.10" : "5.19");
    return explain_trampoline(a, std::move(error));
}

Result<Link> attach_iterator(const Attaching &a) {
    sys::LinkCreateAttr attr = link_attr(a);
    if (!a.options.iterator.empty()) {
        attr.iter.iter_info = sys::reg(a.options.iterator.data());
        attr.iter.iter_info_len = static_cast<uint32_t>(a.options.iterator.size());
    }
    sys::Because why("an iterator: runs for each element when it is read");
    Result<Fd> link = sys::link_create(attr);
    if (link) return Link({}, std::move(*link));
    Error error = std::move(link).error();
    if ((error.os == EBADF || error.os == EINVAL) && a.options.iterator.empty())
        error.hint = format("\"{}\" may need to know what to iterate over: a map's descriptor, a task, a cgroup{}", a.target,
                            a.kind.sleepable ? "; or it takes no sleepable programs: use section iter instead of iter.s" : "");
    return Unexpected(in_context(std::move(error), a.what()));
}

Result<Link> attach_perf_event(const Attaching &a) {
    if (a.options.target_fd < 0)
        return Unexpected(make_error(Errc::invalid_argument, format("{}: needs a perf event, and none was given", a.what()),
                                     "PerfEventLink::open() opens a clock and attaches in one step"));
    Fd event = TRY_IN(sys::duplicate(a.options.target_fd), "{}", a.what());
    Fd link = TRY_IN(run_on_event(event.get(), a.program_fd(), a.options.cookie), "{}", a.what());
    TRY_IN(sys::perf_event_enable(event.get()), "{}", a.what());
    Link out;
    // Without a BPF link the program would stay on the event as long as the caller holds it: said, not hidden.
    if (!link)
        out.note(format("{}: this kernel ties the program to the event itself; it stays until the event is closed", a.what()));
    out.add(std::move(link), std::move(event));
    return out;
}

} // namespace rawbpf::inline v0
