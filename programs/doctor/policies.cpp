// What the administrator allows: privileges, sysctls, lockdown, security modules, mounts; and the machine's counters.
//
// A check is "yes" if the tools can work with it as it is: perf_event_paranoid = 2 is fine for a user with CAP_PERFMON, and a
// "no" for everybody else. Each "no" names the command that would change it.
#include "programs/doctor/doctor.h"

#include <cerrno>

#include <linux/perf_event.h>

#include "programs/capture/memory_shares.h"
#include "programs/capture/waiting_threads.h"
#include "runtime/base/format.h"
#include "runtime/kernel/system_state.h"
#include "runtime/sys/perf.h"
#include "runtime/sys/privileges.h"
#include "runtime/sys/process.h"
#include "runtime/sys/unread.h"

namespace rawbpf::inline v0::doctor {
namespace {

using sys::Capability;

constexpr std::string_view kPrivileges = "privileges", kPolicies = "policies", kFiles = "files", kPerf = "perf",
                           kMemory = "memory";

struct CapabilityRow {
    Capability capability;
    std::string_view name, use, without;
};
constexpr CapabilityRow kCapabilities[] = {
    {Capability::bpf, "CAP_BPF", "load programs, make maps", "setcap cap_bpf,cap_perfmon+ep FILE, or run as root"},
    {Capability::perfmon, "CAP_PERFMON", "trace, sample, read kernel memory",
     "setcap cap_bpf,cap_perfmon+ep FILE, or run as root"},
    {Capability::net_admin, "CAP_NET_ADMIN", "programs for networking", "setcap cap_net_admin+ep FILE, or run as root"},
    {Capability::sys_admin, "CAP_SYS_ADMIN", "objects by id, statistics, user namespaces", "run as root"},
    {Capability::sys_ptrace, "CAP_SYS_PTRACE", "other users' processes: maps, files",
     "setcap cap_sys_ptrace+ep FILE, or run as root"},
    {Capability::syslog, "CAP_SYSLOG", "kernel addresses under kptr_restrict", "setcap cap_syslog+ep FILE, or run as root"},
    {Capability::sys_resource, "CAP_SYS_RESOURCE", "raise the limit of locked memory (before 5.11)",
     "ulimit -l unlimited, as root"},
};

// What a setting without a value has in the place of one.
std::string without_value(const SystemState &state, std::string_view name) {
    const std::string_view why = state.why_unread(name);
    return why.empty() ? std::string("the kernel has no such setting, or shows no number") : std::string(why);
}
std::string mount_proc(const SystemState &state) { return state.proc ? std::string() : "mount -t proc proc /proc"; }

std::string mebibytes(uint64_t bytes) {
    if (bytes == UINT64_MAX) return "unlimited";
    return bytes >= 1 << 20 ? format("{} MiB", bytes >> 20) : format("{} KiB", bytes >> 10);
}

void privileges(std::vector<Check> &out, const SystemState &state, const Result<sys::Capabilities> &caps) {
    for (const CapabilityRow &row : kCapabilities) {
        Check check{kPrivileges, std::string(row.name), {}, std::string(row.use)};
        if (caps)
            // CAP_SYS_ADMIN includes the two that 5.8 split off from it.
            check.ok =
                caps->has(row.capability) || ((row.capability == Capability::bpf || row.capability == Capability::perfmon) &&
                                              caps->has(Capability::sys_admin));
        else
            check.detail = caps.error().message();
        if (check.ok == false) check.fix = row.without;
        out.push_back(std::move(check));
    }
    Check space{kPrivileges, "first user namespace", state.first_user_namespace, "capabilities of others don't count for bpf(2)"};
    if (!state.first_user_namespace) {
        space.detail = without_value(state, "uid_map");
        space.fix = mount_proc(state);
    }
    if (space.ok == false) space.fix = "run outside of the container's user namespace, or with a BPF token (6.9)";
    out.push_back(std::move(space));

    Check memlock{kPrivileges, "memlock"};
    if (Result<uint64_t> limit = sys::memlock_limit()) {
        bool free = *limit >= 64 << 20, raises = caps && caps->has(Capability::sys_resource);
        Result<sys::SystemName> name = sys::system_name();
        memlock.ok = true;
        memlock.detail = format("{}; counts only before 5.11, {}", mebibytes(*limit),
                                free     ? "plenty"
                                : raises ? "raised when needed"
                                         : "and can't be raised here");
    } else
        memlock.detail = limit.error().message();
    out.push_back(std::move(memlock));
}

/// What securityfs would say. `why`: it is not mounted, say; empty: the kernel has nothing to say there.
void tell_unread(Check &check, std::string_view why, std::string_view absent) {
    check.detail = why.empty() ? absent : why;
    if (!why.empty()) check.fix = "mount -t securityfs securityfs /sys/kernel/security";
}

void policies(std::vector<Check> &out, const SystemState &state, const Result<sys::Capabilities> &caps) {
    auto has = [&](Capability c) { return caps && (caps->has(c) || caps->has(Capability::sys_admin)); };
    auto add = [&](std::string name, const std::optional<int64_t> &value, bool fine, const std::string &meaning, std::string fix,
                   std::string_view file = {}) {
        Check check{kPolicies, std::move(name)};
        if (value) {
            check.ok = fine;
            check.detail = format("{}: {}", *value, meaning);
            if (!fine) check.fix = std::move(fix);
        } else {
            check.detail = without_value(state, file.empty() ? std::string_view(check.name) : file);
            check.fix = mount_proc(state);
        }
        out.push_back(std::move(check));
    };
    const int64_t paranoid = state.perf_event_paranoid.value_or(2);
    add("perf_event_paranoid", state.perf_event_paranoid, has(Capability::perfmon) || paranoid < 0,
        has(Capability::perfmon) ? "doesn't concern CAP_PERFMON"
        : paranoid < 0           ? "everybody may sample everything"
        : paranoid == 0          ? "no raw tracepoints without CAP_PERFMON"
        : paranoid == 1          ? "own processes only, kernel included"
        : paranoid == 2          ? "own processes only, user space only"
                                 : "nothing without CAP_PERFMON",
        "sysctl kernel.perf_event_paranoid=-1, or CAP_PERFMON");
    const int64_t unprivileged = state.unprivileged_bpf_disabled.value_or(2);
    add("unprivileged_bpf_disabled", state.unprivileged_bpf_disabled, has(Capability::bpf) || unprivileged == 0,
        unprivileged == 0      ? "anybody may load socket filters"
        : has(Capability::bpf) ? "doesn't concern CAP_BPF"
        : unprivileged == 1    ? "bpf(2) needs CAP_BPF until reboot"
                               : "bpf(2) needs CAP_BPF",
        "run with CAP_BPF");
    const int64_t kptr = state.kptr_restrict.value_or(1);
    bool names = kptr == 0 || (kptr == 1 && has(Capability::syslog));
    add("kptr_restrict", state.kptr_restrict, names,
        kptr == 0   ? "kernel addresses for those who may sample the kernel"
        : kptr == 1 ? "kernel addresses for CAP_SYSLOG"
                    : "kernel addresses for nobody: kernel frames stay without names",
        "sysctl kernel.kptr_restrict=1 (and CAP_SYSLOG), or =0");
    add("max sample rate", state.perf_event_max_sample_rate, state.perf_event_max_sample_rate.value_or(0) >= 99,
        "samples a second on each CPU at most",
        "sysctl kernel.perf_event_max_sample_rate=100000 (the kernel lowers it under load)", "perf_event_max_sample_rate");
    add("bpf_jit_enable", state.bpf_jit_enable, state.bpf_jit_enable.value_or(0) != 0,
        state.bpf_jit_enable.value_or(0) != 0 ? "programs run as machine code"
                                              : "programs are interpreted: slower, and no trampolines",
        "sysctl net.core.bpf_jit_enable=1");

    Check lockdown{kPolicies, "lockdown"};
    if (state.lockdown) {
        lockdown.ok = *state.lockdown != "confidentiality";
        lockdown.detail = *state.lockdown + (*state.lockdown == "none"        ? ""
                                             : *state.lockdown == "integrity" ? ": no bpf_probe_write_user()"
                                                                              : ": programs may not read kernel memory");
        if (!*lockdown.ok) lockdown.fix = "boot without lockdown=confidentiality";
    } else {
        tell_unread(lockdown, state.why_unread("lockdown"), "not built into this kernel");
    }
    out.push_back(std::move(lockdown));

    Check lsm{kPolicies, "BPF LSM"};
    if (state.lsms) {
        std::string list;
        bool there = false;
        for (const std::string &name : *state.lsms) {
            list += (list.empty() ? "" : ",") + name;
            there |= name == "bpf";
        }
        lsm.ok = there;
        lsm.since = "5.7";
        lsm.detail = there ? "active: " + list : "not among " + list + ": LSM programs attach, but never run";
        if (!there) lsm.fix = format("boot with lsm={}{}bpf (CONFIG_BPF_LSM)", list, list.empty() ? "" : ",");
    } else {
        tell_unread(lsm, state.why_unread("lsm"), "no security modules are built into this kernel");
    }
    out.push_back(std::move(lsm));
}

void files(std::vector<Check> &out, const SystemState &state) {
    auto add = [&](std::string name, bool ok, std::string detail, std::string fix, std::string since = {}) {
        out.push_back({kFiles, std::move(name), ok, std::move(detail), std::move(since), ok ? std::string() : std::move(fix)});
    };
    add("/proc", state.proc, "processes, kallsyms, settings", "mount -t proc proc /proc");
    add("/sys", state.sys, "BTF, PMUs, CPUs", "mount -t sysfs sysfs /sys");
    if (const std::string_view why = state.why_unread("btf"); !why.empty())
        out.push_back({kFiles, "kernel BTF", {}, std::string(why), "5.4", state.sys ? "" : "mount -t sysfs sysfs /sys"});
    else
        add("kernel BTF", state.kernel_btf,
            state.kernel_btf ? format("/sys/kernel/btf/vmlinux, and of {} modules", state.module_btfs)
                             : "no /sys/kernel/btf/vmlinux",
            "a kernel with CONFIG_DEBUG_INFO_BTF, or its BTF as a file", "5.4");
    add("tracefs", !state.tracefs.empty(),
        state.tracefs.empty() ? "none at /sys/kernel/tracing: tracepoints can't be looked up by name" : state.tracefs,
        "mount -t tracefs tracefs /sys/kernel/tracing");
    add("bpffs", state.bpffs, state.bpffs ? "/sys/fs/bpf" : "not mounted at /sys/fs/bpf: nothing can be pinned",
        "mount -t bpf bpf /sys/fs/bpf");
}

/// The fix, where the kernel has no perf events at all; else empty.
std::string counter(std::vector<Check> &out, std::string name, uint32_t type, uint64_t config, std::string_view use) {
    sys::PerfEventAttr attr;
    attr.type = type;
    attr.config = config;
    attr.sample_period = 1'000'000;
    attr.bits = sys::kPerfDisabled;
    Check check{kPerf, std::move(name), {}, std::string(use)};
    Result<Fd> event = sys::perf_event_open(attr, 0, -1);
    if (event)
        check.ok = true;
    else if (sys::is_unread(event.error())) // EMFILE, ENOMEM: no answer
        check.detail = event.error().message();
    else if (event.error().os == EPERM || event.error().os == EACCES) {
        attr.bits |= sys::kPerfExcludeKernel | sys::kPerfExcludeHv;
        bool own = sys::perf_event_open(attr, 0, -1).has_value();
        check.ok = own ? std::optional(true) : std::nullopt;
        check.detail = own ? "in user space only" : "not with these privileges";
        if (!own) check.fix = "CAP_PERFMON, or sysctl kernel.perf_event_paranoid=-1";
    } else {
        check.ok = false;
        check.detail = event.error().message();
        check.fix = event.error().hint;
    }
    std::string without = !event && event.error().os == ENOSYS ? check.fix : std::string();
    out.push_back(std::move(check));
    return without;
}

void perf(std::vector<Check> &out, const SystemState &state) {
    const std::string without =
        counter(out, "CPU clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "a software clock to sample by");
    counter(out, "PMU cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "the hardware's cycle counter, for --hw");
    constexpr struct {
        std::string_view pmu, name, detail, fix, since;
    } kPmus[] = {
        {"kprobe", "kprobes", "single kernel functions", "a kernel with CONFIG_KPROBE_EVENTS", "4.17"},
        {"uprobe", "uprobes", "functions in user space", "a kernel with CONFIG_UPROBE_EVENTS", "4.17"},
        {"tracepoint", "tracepoints", "the kernel's own places to watch", "a kernel with CONFIG_EVENT_TRACING", "2.6.31"},
    };
    for (const auto &row : kPmus) {
        Check check{kPerf, std::string(row.name), {}, std::string(row.detail), std::string(row.since)};
        if (!without.empty()) {
            check.ok = false;
            check.detail = "attached by perf_event_open(2), which is missing";
            check.fix = without;
        } else if (const std::string_view why = state.why_unread("pmus"); !why.empty()) {
            check.detail = why, check.fix = state.sys ? "" : "mount -t sysfs sysfs /sys";
        } else {
            check.ok = state.has_pmu(row.pmu);
            if (check.ok == false) check.fix = row.fix;
        }
        out.push_back(std::move(check));
    }
}

// What each part of a run takes of this machine's memory, where nobody says how much.
void memory(std::vector<Check> &out) {
    const MemoryShares shares = memory_shares();
    auto add = [&](std::string name, std::string detail) { out.push_back({kMemory, std::move(name), true, std::move(detail)}); };
    add("memory", format("{}: this machine's, or what a limit leaves; the rest are parts of it", mebibytes(shares.memory)));
    add("ring of trace, custom", format("{}; --ring", mebibytes(shares.events_ring)));
    add("ring of profile", format("up to {}, by CPUs and frequency; --ring", mebibytes(shares.samples_ring)));
    add("unwind tables", format("up to {}; --unwind-memory", mebibytes(shares.unwind_tables)));
    add("events to be written", format("up to {}; --backlog", mebibytes(shares.backlog)));
    add("threads that wait", format("room for {} in profile --off-cpu, 4.8 KB each; for {} in custom, 2.8 KB each",
                                    waiting_threads(kWaitingLanguageBytes), waiting_threads()));
    add("--ring, --unwind-memory", format("at most {} each", mebibytes(shares.most_asked)));
}

} // namespace

void examine_policies(std::vector<Check> &checks) {
    SystemState state = read_system_state();
    Result<sys::Capabilities> caps = sys::capabilities();
    privileges(checks, state, caps);
    policies(checks, state, caps);
    files(checks, state);
    perf(checks, state);
    memory(checks);
}

} // namespace rawbpf::inline v0::doctor
