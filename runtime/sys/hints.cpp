// Hints: what an errno of bpf(2) or perf_event_open(2) usually means, by command. First match wins; a line with kAnyCommand is
// the fallback. Sources: kernel/bpf/syscall.c, kernel/bpf/verifier.c, kernel/events/core.c.
#include "runtime/sys/hints.h"

#include <cerrno>

#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

struct Hint {
    uint32_t command;
    int os;
    std::string_view text;
};

constexpr Hint kBpfHints[] = {
    {BPF_MAP_CREATE, EPERM,
     "needs CAP_BPF, and CAP_PERFMON for programs that trace (CAP_SYS_ADMIN before Linux 5.8): run as root, or: setcap "
     "cap_bpf,cap_perfmon+ep FILE. Before 5.11 a low memlock limit (ulimit -l) has the same effect"},
    {BPF_MAP_CREATE, EINVAL, "this kernel doesn't know the map type or one of its flags, or refuses these sizes for it"},
    {BPF_MAP_CREATE, E2BIG, "the map is larger than this kernel allows, or uses an attribute that it doesn't know"},
    {BPF_MAP_CREATE, ENOMEM, "the map doesn't fit into memory (or into the memory cgroup): fewer entries would help"},
    {BPF_MAP_UPDATE_ELEM, E2BIG, "the map is full, or the index is past its end"},
    {BPF_MAP_UPDATE_ELEM, EEXIST, "the key is there already and BPF_NOEXIST was asked for"},
    {BPF_MAP_UPDATE_ELEM, EPERM, "the map is frozen, or read-only for user space"},
    {BPF_MAP_UPDATE_BATCH, EPERM, "the map is frozen, or read-only for user space"},
    {BPF_PROG_LOAD, EPERM,
     "needs CAP_BPF, and CAP_PERFMON for programs that trace (CAP_SYS_ADMIN before Linux 5.8): run as root, or: setcap "
     "cap_bpf,cap_perfmon+ep FILE"},
    {BPF_PROG_LOAD, EINVAL, "the verifier refused the program, or this kernel doesn't know its type or one of its attributes"},
    {BPF_PROG_LOAD, EACCES, "the verifier refused the program: its log says where and why"},
    {BPF_PROG_LOAD, E2BIG,
     "the program is too long or too complex for the verifier (a million steps), or uses a newer attribute"},
    {BPF_PROG_LOAD, ENOSPC, "the verifier's log didn't fit its buffer"},
    {BPF_BTF_LOAD, EPERM, "needs CAP_BPF (CAP_SYS_ADMIN before Linux 5.8)"},
    {BPF_BTF_LOAD, EINVAL, "this kernel found something in the BTF that it doesn't know or doesn't allow"},
    {BPF_OBJ_PIN, EPERM, "pins live on a bpf file system: mount -t bpf bpf /sys/fs/bpf"},
    {BPF_OBJ_PIN, ENOENT, "the directory must exist: mount -t bpf bpf /sys/fs/bpf"},
    {BPF_OBJ_PIN, EEXIST, "something is pinned there already"},
    {BPF_OBJ_GET, ENOENT, "nothing is pinned there"},
    {BPF_LINK_CREATE, EPERM, "needs CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), and CAP_NET_ADMIN for networking"},
    {BPF_LINK_CREATE, EINVAL,
     "this kernel has no such link for this program, or the program was loaded for another attach point"},
    {BPF_LINK_CREATE, EBUSY, "something else is attached there already"},
    {BPF_ENABLE_STATS, EPERM, "needs CAP_SYS_ADMIN"},
    {BPF_ENABLE_STATS, EINVAL, "needs Linux 5.8; before that: sysctl kernel.bpf_stats_enabled=1"},
    {BPF_PROG_GET_FD_BY_ID, EPERM, "opening by id needs CAP_SYS_ADMIN"},
    {BPF_MAP_GET_FD_BY_ID, EPERM, "opening by id needs CAP_SYS_ADMIN"},
    {BPF_BTF_GET_FD_BY_ID, EPERM, "opening by id needs CAP_SYS_ADMIN"},
    {BPF_LINK_GET_FD_BY_ID, EPERM, "opening by id needs CAP_SYS_ADMIN"},
    {BPF_PROG_GET_NEXT_ID, EPERM, "listing needs CAP_SYS_ADMIN"},
    {BPF_MAP_GET_NEXT_ID, EPERM, "listing needs CAP_SYS_ADMIN"},
    {BPF_BTF_GET_NEXT_ID, EPERM, "listing needs CAP_SYS_ADMIN"},
    {BPF_LINK_GET_NEXT_ID, EPERM, "listing needs CAP_SYS_ADMIN"},
    {kAnyCommand, EPERM, "needs CAP_BPF, and CAP_PERFMON for tracing (CAP_SYS_ADMIN before Linux 5.8)"},
    {kAnyCommand, ENOSYS, "this kernel is built without bpf(2) (CONFIG_BPF_SYSCALL), or a sandbox hides it"},
    {kAnyCommand, EMFILE, "too many open files: ulimit -n"},
};

constexpr Hint kPerfHints[] = {
    {0, EPERM, "needs CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or a lower /proc/sys/kernel/perf_event_paranoid"},
    {0, EACCES, "needs CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or a lower /proc/sys/kernel/perf_event_paranoid"},
    {0, ENOSYS, "this kernel is built without perf events (CONFIG_PERF_EVENTS), or a sandbox hides them"},
    {0, ENOENT, "this machine has no such event; virtual machines often have no PMU. The software clock works everywhere"},
    {0, EOPNOTSUPP, "this machine has no such event; virtual machines often have no PMU. The software clock works everywhere"},
    {0, ENODEV, "there is no such CPU, or it is offline"},
    {0, ESRCH, "there is no such process"},
    {0, EMFILE, "too many open files, one is needed for each CPU: ulimit -n"},
    {0, EBUSY, "somebody else holds the PMU exclusively"},
};

} // namespace

std::string_view bpf_hint(uint32_t command, int os) {
    for (const Hint &hint : kBpfHints)
        if (hint.os == os && (hint.command == command || hint.command == kAnyCommand)) return hint.text;
    return {};
}

std::string_view perf_hint(int os) {
    for (const Hint &hint : kPerfHints)
        if (hint.os == os) return hint.text;
    return {};
}

} // namespace rawbpf::inline v0::sys
