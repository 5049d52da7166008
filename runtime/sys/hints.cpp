// Hints: what an errno of bpf(2) or perf_event_open(2) usually means, by command. First match wins; a line with kAnyCommand is
// the fallback. Sources: kernel/bpf/syscall.c, kernel/bpf/verifier.c, kernel/events/core.c.
#include "runtime/sys/hints.h"

#include <cerrno>
#include <span>

#include "runtime/base/format.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

using C = Capability;

// `text` says what the errno means by itself. Where it stands for capabilities as well, `needs` are those: then what is said is
// found out (facts.h), and `text` is what else can refuse.
struct Hint {
    uint32_t command;
    int os;
    std::string_view text;
    std::span<const C> needs = {};
};

constexpr C kBpf[] = {C::bpf}, kTracing[] = {C::bpf, C::perfmon}, kPerfmon[] = {C::perfmon}, kAdmin[] = {C::sys_admin};

constexpr Hint kBpfHints[] = {
    {BPF_MAP_CREATE, EPERM, "before Linux 5.11 a low memlock limit (ulimit -l)", kBpf},
    {BPF_MAP_CREATE, EINVAL, "this kernel doesn't know the map type or one of its flags, or refuses these sizes for it"},
    {BPF_MAP_CREATE, E2BIG, "the map is larger than this kernel allows, or uses an attribute that it doesn't know"},
    {BPF_MAP_CREATE, ENOMEM, "the map doesn't fit into memory (or into the memory cgroup): give it fewer entries"},
    {BPF_MAP_UPDATE_ELEM, E2BIG, "the map is full, or the index is past its end"},
    {BPF_MAP_UPDATE_ELEM, EEXIST, "the key exists already, and the caller gave BPF_NOEXIST"},
    {BPF_MAP_UPDATE_ELEM, EPERM, "the map is frozen, or read-only for user space"},
    {BPF_MAP_UPDATE_BATCH, E2BIG, "the map is full, or an index is past its end"},
    {BPF_MAP_UPDATE_BATCH, EPERM, "the map is frozen, or read-only for user space"},
    {BPF_PROG_LOAD, EPERM, {}, kTracing},
    {BPF_PROG_LOAD, EINVAL, "the verifier refused the program, or this kernel doesn't know its type or one of its attributes"},
    {BPF_PROG_LOAD, EACCES, "the verifier refused the program: its log says where and why"},
    {BPF_PROG_LOAD, E2BIG,
     "the program is too long or too complex for the verifier (a million steps), or uses a newer attribute"},
    {BPF_PROG_LOAD, ENOSPC, "the verifier's log didn't fit its buffer"},
    {BPF_BTF_LOAD, EPERM, {}, kBpf},
    {BPF_BTF_LOAD, EINVAL, "this kernel found something in the BTF that it doesn't know or doesn't allow"},
    {BPF_OBJ_PIN, EPERM, "the directory isn't on a bpf file system (mount -t bpf bpf /sys/fs/bpf), or a policy forbids it"},
    {BPF_OBJ_PIN, ENOENT, "a directory of the path doesn't exist; pins need a bpf file system: mount -t bpf bpf /sys/fs/bpf"},
    {BPF_OBJ_PIN, EEXIST, "something is pinned there already"},
    {BPF_OBJ_GET, ENOENT, "nothing is pinned there"},
    {BPF_LINK_CREATE, EPERM, {}, kTracing},
    {BPF_LINK_CREATE, EINVAL,
     "this kernel has no such link for this program, or the program was loaded for another attach point"},
    {BPF_LINK_CREATE, EBUSY, "something else is attached there already"},
    {BPF_ENABLE_STATS, EPERM, {}, kAdmin},
    {BPF_ENABLE_STATS, EINVAL,
     "this kernel doesn't know the command (5.8) or the kind of statistics; sysctl "
     "kernel.bpf_stats_enabled=1 does the same"},
    {BPF_PROG_GET_FD_BY_ID, EPERM, {}, kAdmin}, // opening by id, listing
    {BPF_MAP_GET_FD_BY_ID, EPERM, {}, kAdmin},
    {BPF_BTF_GET_FD_BY_ID, EPERM, {}, kAdmin},
    {BPF_LINK_GET_FD_BY_ID, EPERM, {}, kAdmin},
    {BPF_PROG_GET_NEXT_ID, EPERM, {}, kAdmin},
    {BPF_MAP_GET_NEXT_ID, EPERM, {}, kAdmin},
    {BPF_BTF_GET_NEXT_ID, EPERM, {}, kAdmin},
    {BPF_LINK_GET_NEXT_ID, EPERM, {}, kAdmin},
    {kAnyCommand, EPERM, {}, kTracing},
    {kAnyCommand, ENOSYS, "this kernel is built without bpf(2) (CONFIG_BPF_SYSCALL), or a sandbox hides it"},
    {kAnyCommand, EMFILE, "too many open files: raise the limit with ulimit -n"},
};

constexpr Hint kPerfHints[] = {
    {0, EPERM, {}, kPerfmon},
    {0, EACCES, {}, kPerfmon},
    {0, ENOSYS, "this kernel is built without perf events (CONFIG_PERF_EVENTS), or a sandbox hides them"},
    {0, ENOENT, "this machine has no such event; virtual machines often have no PMU. The software clock works everywhere"},
    {0, EOPNOTSUPP, "this machine has no such event; virtual machines often have no PMU. The software clock works everywhere"},
    {0, ENODEV, "there is no such CPU, or it is offline"},
    {0, ESRCH, "there is no such process"},
    {0, EMFILE, "too many open files; rawbpf needs one for each CPU: raise the limit with ulimit -n"},
    {0, EBUSY, "another process uses the PMU exclusively"},
};

template <class Facts> std::string said(const Hint &hint, Facts &&facts) {
    return hint.needs.empty() ? std::string(hint.text) : refusal_hint(hint.needs, facts(), hint.text);
}

const Hint *find(std::span<const Hint> hints, uint32_t command, int os) {
    for (const Hint &hint : hints)
        if (hint.os == os && (hint.command == command || hint.command == kAnyCommand)) return &hint;
    return nullptr;
}

std::string perf_words(std::string words, int os, const Facts &facts) {
    if ((os == EPERM || os == EACCES) && facts.perf_event_paranoid && !(facts.own && facts.own->has(C::perfmon)) &&
        !(facts.own && facts.own->has(C::sys_admin)))
        append(words, "; or lower perf_event_paranoid, which is {} now", *facts.perf_event_paranoid);
    return words;
}

} // namespace

std::string bpf_hint(uint32_t command, int os, const Facts &known) {
    const Hint *hint = find(kBpfHints, command, os);
    return hint ? said(*hint, [&] { return known; }) : std::string();
}

std::string bpf_hint(uint32_t command, int os) {
    const Hint *hint = find(kBpfHints, command, os);
    return hint ? said(*hint, facts) : std::string();
}

std::string perf_hint(int os, const Facts &known) {
    const Hint *hint = find(kPerfHints, 0, os);
    return hint ? perf_words(said(*hint, [&] { return known; }), os, known) : std::string();
}

std::string perf_hint(int os) {
    const bool refused = os == EPERM || os == EACCES;
    return perf_hint(os, refused ? facts() : Facts());
}

} // namespace rawbpf::inline v0::sys
