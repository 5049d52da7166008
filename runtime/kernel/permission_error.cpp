// Which capability is short. The kernel says EPERM and no more, whichever of these it was (kernel/bpf/syscall.c, bpf_prog_load):
//
//      CAP_BPF          everything (5.8; CAP_SYS_ADMIN before, which still stands for all three)
//      CAP_PERFMON      programs that trace: they read the kernel's memory
//      CAP_NET_ADMIN    programs that networking and cgroups run
//
// All of them count in the first user namespace only: the root of a container has them and is refused nevertheless.
#include "runtime/kernel/permission_error.h"

#include <algorithm>
#include <linux/bpf.h>

#include "runtime/base/format.h"
#include "runtime/kernel/system_state.h"
#include "runtime/sys/file.h"
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
    struct Need {
        bool needed;
        Capability capability;
        std::string_view name, small;
    };
    std::string needed, short_of, small;
    for (const Need &need :
         {Need{true, Capability::bpf, "CAP_BPF", "cap_bpf"}, Need{tracing, Capability::perfmon, "CAP_PERFMON", "cap_perfmon"},
          Need{networks, Capability::net_admin, "CAP_NET_ADMIN", "cap_net_admin"}}) {
        if (!need.needed) continue;
        append(needed, "{}{}", needed.empty() ? "" : ", ", need.name);
        append(small, "{}{}", small.empty() ? "" : ",", need.small);
        if (!own.has(need.capability)) append(short_of, "{}{}", short_of.empty() ? "" : ", ", need.name);
    }
    if (own.has(Capability::sys_admin)) short_of.clear();
    if (short_of.empty() && !first_namespace)
        return "the capabilities are all here, but of a user namespace (a container's?), and bpf(2) counts those of the first "
               "only: "
               "run it outside";
    if (short_of.empty()) return {};
    return format("needs {} (CAP_SYS_ADMIN before Linux 5.8), lacks {}: run as root, or: setcap {}+ep FILE", needed, short_of,
                  small);
}

std::string missing_privileges(std::span<const uint32_t> program_types) {
    const Result<std::string> map = sys::read_file("/proc/self/uid_map", 4096);
    return missing_privileges(program_types, sys::capabilities().value_or(sys::Capabilities()),
                              !map || is_first_user_namespace(*map));
}

} // namespace rawbpf::inline v0
