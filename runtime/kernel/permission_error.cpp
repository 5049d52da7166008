// Finds out which capability is missing. The kernel only says EPERM, whichever of these it was (kernel/bpf/syscall.c,
// bpf_prog_load):
//
//      CAP_BPF          everything (5.8; CAP_SYS_ADMIN before, which still stands for all three)
//      CAP_PERFMON      programs that trace: they read the kernel's memory
//      CAP_NET_ADMIN    programs that networking and cgroups run
//
// All of them count in the first user namespace only: root in a container has them and is refused all the same.
#include "runtime/kernel/permission_error.h"

#include <algorithm>
#include <linux/bpf.h>
#include <vector>

#include "runtime/sys/facts.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0 {
namespace {

using sys::Capability;

bool traces(uint32_t type) {
    switch (type) {
    case BPF_PROG_TYPE_KPROBE:
    case BPF_PROG_TYPE_TRACEPOINT:
    case BPF_PROG_TYPE_PERF_EVENT:
    case BPF_PROG_TYPE_RAW_TRACEPOINT:
    case BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE:
    case BPF_PROG_TYPE_TRACING:
    case BPF_PROG_TYPE_LSM:
    case BPF_PROG_TYPE_STRUCT_OPS:
    case BPF_PROG_TYPE_EXT: return true;
    default: return false;
    }
}

bool is_for_networks(uint32_t type) {
    switch (type) {
    case BPF_PROG_TYPE_SCHED_CLS:
    case BPF_PROG_TYPE_SCHED_ACT:
    case BPF_PROG_TYPE_XDP:
    case BPF_PROG_TYPE_LWT_IN:
    case BPF_PROG_TYPE_LWT_OUT:
    case BPF_PROG_TYPE_LWT_XMIT:
    case BPF_PROG_TYPE_LWT_SEG6LOCAL:
    case BPF_PROG_TYPE_SK_SKB:
    case BPF_PROG_TYPE_SK_MSG:
    case BPF_PROG_TYPE_FLOW_DISSECTOR:
    case BPF_PROG_TYPE_CGROUP_DEVICE:
    case BPF_PROG_TYPE_CGROUP_SOCK:
    case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
    case BPF_PROG_TYPE_CGROUP_SOCKOPT:
    case BPF_PROG_TYPE_CGROUP_SYSCTL:
    case BPF_PROG_TYPE_SOCK_OPS:
    case BPF_PROG_TYPE_EXT:
    case uapi::BPF_PROG_TYPE_NETFILTER: return true;
    default: return false;
    }
}

} // namespace

std::string missing_privileges(std::span<const uint32_t> program_types, sys::Capabilities own, bool first_namespace) {
    const bool tracing = std::any_of(program_types.begin(), program_types.end(), traces);
    const bool networks = std::any_of(program_types.begin(), program_types.end(), is_for_networks);
    std::vector<Capability> needed{Capability::bpf};
    if (tracing) needed.push_back(Capability::perfmon);
    if (networks) needed.push_back(Capability::net_admin);
    sys::Facts facts;
    facts.own = own;
    facts.first_user_namespace = first_namespace;
    return sys::lacking(needed, facts);
}

std::string missing_privileges(std::span<const uint32_t> program_types) {
    const sys::Facts facts = sys::facts();
    if (!facts.own) return {}; // what is here isn't known, so neither is what is missing
    return missing_privileges(program_types, *facts.own, facts.first_user_namespace.value_or(true));
}

} // namespace rawbpf::inline v0
