// Names of the kernel's numbers.
//
// A table is one text, names in the kernel's order separated by blanks, without their common prefix: an array of pointers
// would cost a relocation a name in a position-independent binary, and nobody looks names up in a hurry. The order is that of
// the enums in include/uapi/linux/bpf.h of Linux 7.2; a new name is added at the end of its list.
#include "runtime/sys/names.h"

#include "runtime/base/format.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr std::string_view kCommands =
    "MAP_CREATE MAP_LOOKUP_ELEM MAP_UPDATE_ELEM MAP_DELETE_ELEM MAP_GET_NEXT_KEY PROG_LOAD OBJ_PIN OBJ_GET "
    "PROG_ATTACH PROG_DETACH PROG_TEST_RUN PROG_GET_NEXT_ID MAP_GET_NEXT_ID PROG_GET_FD_BY_ID MAP_GET_FD_BY_ID "
    "OBJ_GET_INFO_BY_FD PROG_QUERY RAW_TRACEPOINT_OPEN BTF_LOAD BTF_GET_FD_BY_ID TASK_FD_QUERY "
    "MAP_LOOKUP_AND_DELETE_ELEM MAP_FREEZE BTF_GET_NEXT_ID MAP_LOOKUP_BATCH MAP_LOOKUP_AND_DELETE_BATCH "
    "MAP_UPDATE_BATCH MAP_DELETE_BATCH LINK_CREATE LINK_UPDATE LINK_GET_FD_BY_ID LINK_GET_NEXT_ID ENABLE_STATS "
    "ITER_CREATE LINK_DETACH PROG_BIND_MAP TOKEN_CREATE PROG_STREAM_READ_BY_FD PROG_ASSOC_STRUCT_OPS";
constexpr std::string_view kMapTypes =
    "UNSPEC HASH ARRAY PROG_ARRAY PERF_EVENT_ARRAY PERCPU_HASH PERCPU_ARRAY STACK_TRACE CGROUP_ARRAY LRU_HASH "
    "LRU_PERCPU_HASH LPM_TRIE ARRAY_OF_MAPS HASH_OF_MAPS DEVMAP SOCKMAP CPUMAP XSKMAP SOCKHASH CGROUP_STORAGE "
    "REUSEPORT_SOCKARRAY PERCPU_CGROUP_STORAGE QUEUE STACK SK_STORAGE DEVMAP_HASH STRUCT_OPS RINGBUF INODE_STORAGE "
    "TASK_STORAGE BLOOM_FILTER USER_RINGBUF CGRP_STORAGE ARENA INSN_ARRAY RHASH";
constexpr std::string_view kProgTypes =
    "UNSPEC SOCKET_FILTER KPROBE SCHED_CLS SCHED_ACT TRACEPOINT XDP PERF_EVENT CGROUP_SKB CGROUP_SOCK LWT_IN LWT_OUT "
    "LWT_XMIT SOCK_OPS SK_SKB CGROUP_DEVICE SK_MSG RAW_TRACEPOINT CGROUP_SOCK_ADDR LWT_SEG6LOCAL LIRC_MODE2 "
    "SK_REUSEPORT FLOW_DISSECTOR CGROUP_SYSCTL RAW_TRACEPOINT_WRITABLE CGROUP_SOCKOPT TRACING STRUCT_OPS EXT LSM "
    "SK_LOOKUP SYSCALL NETFILTER";
constexpr std::string_view kAttachTypes =
    "CGROUP_INET_INGRESS CGROUP_INET_EGRESS CGROUP_INET_SOCK_CREATE CGROUP_SOCK_OPS SK_SKB_STREAM_PARSER "
    "SK_SKB_STREAM_VERDICT CGROUP_DEVICE SK_MSG_VERDICT CGROUP_INET4_BIND CGROUP_INET6_BIND CGROUP_INET4_CONNECT "
    "CGROUP_INET6_CONNECT CGROUP_INET4_POST_BIND CGROUP_INET6_POST_BIND CGROUP_UDP4_SENDMSG CGROUP_UDP6_SENDMSG "
    "LIRC_MODE2 FLOW_DISSECTOR CGROUP_SYSCTL CGROUP_UDP4_RECVMSG CGROUP_UDP6_RECVMSG CGROUP_GETSOCKOPT "
    "CGROUP_SETSOCKOPT TRACE_RAW_TP TRACE_FENTRY TRACE_FEXIT MODIFY_RETURN LSM_MAC TRACE_ITER "
    "CGROUP_INET4_GETPEERNAME CGROUP_INET6_GETPEERNAME CGROUP_INET4_GETSOCKNAME CGROUP_INET6_GETSOCKNAME XDP_DEVMAP "
    "CGROUP_INET_SOCK_RELEASE XDP_CPUMAP SK_LOOKUP XDP SK_SKB_VERDICT SK_REUSEPORT_SELECT "
    "SK_REUSEPORT_SELECT_OR_MIGRATE PERF_EVENT TRACE_KPROBE_MULTI LSM_CGROUP STRUCT_OPS NETFILTER TCX_INGRESS "
    "TCX_EGRESS TRACE_UPROBE_MULTI CGROUP_UNIX_CONNECT CGROUP_UNIX_SENDMSG CGROUP_UNIX_RECVMSG "
    "CGROUP_UNIX_GETPEERNAME CGROUP_UNIX_GETSOCKNAME NETKIT_PRIMARY NETKIT_PEER TRACE_KPROBE_SESSION "
    "TRACE_UPROBE_SESSION TRACE_FSESSION TRACE_FENTRY_MULTI TRACE_FEXIT_MULTI TRACE_FSESSION_MULTI";
constexpr std::string_view kLinkTypes =
    "UNSPEC RAW_TRACEPOINT TRACING CGROUP ITER NETNS XDP PERF_EVENT KPROBE_MULTI STRUCT_OPS NETFILTER TCX "
    "UPROBE_MULTI NETKIT SOCKMAP TRACING_MULTI";

std::string nth(std::string_view prefix, std::string_view words, uint32_t n) {
    std::string_view rest = words;
    for (uint32_t i = 0; i < n && !rest.empty(); ++i) {
        size_t blank = rest.find(' ');
        rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
    }
    if (rest.empty()) return format("{}", n);
    std::string out(prefix);
    out += rest.substr(0, rest.find(' '));
    return out;
}

// As numbers, not by the headers' names: the same bits on every header.
constexpr FlagName kMapFlags[] = {
    {1U << 0, "BPF_F_NO_PREALLOC"},   {1U << 1, "BPF_F_NO_COMMON_LRU"},
    {1U << 2, "BPF_F_NUMA_NODE"},     {1U << 3, "BPF_F_RDONLY"},
    {1U << 4, "BPF_F_WRONLY"},        {1U << 5, "BPF_F_STACK_BUILD_ID"},
    {1U << 6, "BPF_F_ZERO_SEED"},     {1U << 7, "BPF_F_RDONLY_PROG"},
    {1U << 8, "BPF_F_WRONLY_PROG"},   {1U << 9, "BPF_F_CLONE"},
    {1U << 10, "BPF_F_MMAPABLE"},     {1U << 11, "BPF_F_PRESERVE_ELEMS"},
    {1U << 12, "BPF_F_INNER_MAP"},    {1U << 13, "BPF_F_LINK"},
    {1U << 14, "BPF_F_PATH_FD"},      {1U << 15, "BPF_F_VTYPE_BTF_OBJ_FD"},
    {1U << 16, "BPF_F_TOKEN_FD"},     {1U << 17, "BPF_F_SEGV_ON_FAULT"},
    {1U << 18, "BPF_F_NO_USER_CONV"}, {1U << 19, "BPF_F_RB_OVERWRITE"},
};
constexpr FlagName kUpdateFlags[] = {
    {1, "BPF_NOEXIST"}, {2, "BPF_EXIST"}, {4, "BPF_F_LOCK"}, {8, "BPF_F_CPU"}, {16, "BPF_F_ALL_CPUS"}};
constexpr FlagName kProgFlags[] = {
    {1U << 0, "BPF_F_STRICT_ALIGNMENT"},   {1U << 1, "BPF_F_ANY_ALIGNMENT"},       {1U << 2, "BPF_F_TEST_RND_HI32"},
    {1U << 3, "BPF_F_TEST_STATE_FREQ"},    {1U << 4, "BPF_F_SLEEPABLE"},           {1U << 5, "BPF_F_XDP_HAS_FRAGS"},
    {1U << 6, "BPF_F_XDP_DEV_BOUND_ONLY"}, {1U << 7, "BPF_F_TEST_REG_INVARIANTS"}, {1U << 16, "BPF_F_TOKEN_FD"},
};

} // namespace

std::string command_name(uint32_t command) { return nth("BPF_", kCommands, command); }
std::string map_type_name(uint32_t type) { return nth("BPF_MAP_TYPE_", kMapTypes, type); }
std::string prog_type_name(uint32_t type) { return nth("BPF_PROG_TYPE_", kProgTypes, type); }
std::string attach_type_name(uint32_t type) { return nth("BPF_", kAttachTypes, type); }
std::string link_type_name(uint32_t type) { return nth("BPF_LINK_TYPE_", kLinkTypes, type); }

std::string flag_names(uint64_t flags, std::span<const FlagName> names) {
    if (flags == 0) return "0";
    std::string out;
    for (const FlagName &flag : names) {
        if ((flags & flag.value) != flag.value) continue;
        if (!out.empty()) out += '|';
        out += flag.name;
        flags &= ~flag.value;
    }
    if (flags != 0) append(out, "{}{:#x}", out.empty() ? "" : "|", flags);
    return out;
}

std::string map_flag_names(uint64_t flags) { return flag_names(flags, kMapFlags); }
std::string update_flag_names(uint64_t flags) { return flags == 0 ? "BPF_ANY" : flag_names(flags, kUpdateFlags); }
std::string prog_flag_names(uint64_t flags) { return flag_names(flags, kProgFlags); }

} // namespace rawbpf::inline v0::sys
