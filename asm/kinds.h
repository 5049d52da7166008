// The kernel's lists of program, attach and link types: number, name, and the version that brought each. Map types, of which
// more is known, have map_types.h.
//
// Each list is in one place: the enum, the name and the "since" of a type come from one line here. The numbers are positions,
// as in include/uapi/linux/bpf.h (types are only added at the end). The headers of an old system lack the newer names, so the
// lists are our own. An empty version means that no release had the type when this was written.
#pragma once

#include <cstdint>
#include <string_view>

#include "asm/map_types.h"

namespace rawbpf::inline v0 {

// clang-format off
#define RAWBPF_PROGRAM_TYPES(X) \
    X(UNSPEC, "")                 X(SOCKET_FILTER, "3.19")      X(KPROBE, "4.1")              X(SCHED_CLS, "4.1") \
    X(SCHED_ACT, "4.1")           X(TRACEPOINT, "4.7")          X(XDP, "4.8")                 X(PERF_EVENT, "4.9") \
    X(CGROUP_SKB, "4.10")         X(CGROUP_SOCK, "4.10")        X(LWT_IN, "4.10")             X(LWT_OUT, "4.10") \
    X(LWT_XMIT, "4.10")           X(SOCK_OPS, "4.13")           X(SK_SKB, "4.14")             X(CGROUP_DEVICE, "4.15") \
    X(SK_MSG, "4.17")             X(RAW_TRACEPOINT, "4.17")     X(CGROUP_SOCK_ADDR, "4.17")   X(LWT_SEG6LOCAL, "4.18") \
    X(LIRC_MODE2, "4.18")         X(SK_REUSEPORT, "4.19")       X(FLOW_DISSECTOR, "4.20")     X(CGROUP_SYSCTL, "5.2") \
    X(RAW_TRACEPOINT_WRITABLE, "5.2") X(CGROUP_SOCKOPT, "5.3")  X(TRACING, "5.5")             X(STRUCT_OPS, "5.6") \
    X(EXT, "5.6")                 X(LSM, "5.7")                 X(SK_LOOKUP, "5.9")           X(SYSCALL, "5.14") \
    X(NETFILTER, "6.4")

#define RAWBPF_ATTACH_TYPES(X) \
    X(CGROUP_INET_INGRESS, "4.10")           X(CGROUP_INET_EGRESS, "4.10")            X(CGROUP_INET_SOCK_CREATE, "4.10") \
    X(CGROUP_SOCK_OPS, "4.13")               X(SK_SKB_STREAM_PARSER, "4.14")          X(SK_SKB_STREAM_VERDICT, "4.14") \
    X(CGROUP_DEVICE, "4.15")                 X(SK_MSG_VERDICT, "4.17")                X(CGROUP_INET4_BIND, "4.17") \
    X(CGROUP_INET6_BIND, "4.17")             X(CGROUP_INET4_CONNECT, "4.17")          X(CGROUP_INET6_CONNECT, "4.17") \
    X(CGROUP_INET4_POST_BIND, "4.17")        X(CGROUP_INET6_POST_BIND, "4.17")        X(CGROUP_UDP4_SENDMSG, "4.18") \
    X(CGROUP_UDP6_SENDMSG, "4.18")           X(LIRC_MODE2, "4.18")                    X(FLOW_DISSECTOR, "4.20") \
    X(CGROUP_SYSCTL, "5.2")                  X(CGROUP_UDP4_RECVMSG, "5.2")            X(CGROUP_UDP6_RECVMSG, "5.2") \
    X(CGROUP_GETSOCKOPT, "5.3")              X(CGROUP_SETSOCKOPT, "5.3")              X(TRACE_RAW_TP, "5.5") \
    X(TRACE_FENTRY, "5.5")                   X(TRACE_FEXIT, "5.5")                    X(MODIFY_RETURN, "5.7") \
    X(LSM_MAC, "5.7")                        X(TRACE_ITER, "5.8")                     X(CGROUP_INET4_GETPEERNAME, "5.8") \
    X(CGROUP_INET6_GETPEERNAME, "5.8")       X(CGROUP_INET4_GETSOCKNAME, "5.8")       X(CGROUP_INET6_GETSOCKNAME, "5.8") \
    X(XDP_DEVMAP, "5.8")                     X(CGROUP_INET_SOCK_RELEASE, "5.9")       X(XDP_CPUMAP, "5.9") \
    X(SK_LOOKUP, "5.9")                      X(XDP, "5.9")                            X(SK_SKB_VERDICT, "5.13") \
    X(SK_REUSEPORT_SELECT, "5.14")           X(SK_REUSEPORT_SELECT_OR_MIGRATE, "5.14") X(PERF_EVENT, "5.15") \
    X(TRACE_KPROBE_MULTI, "5.18")            X(LSM_CGROUP, "6.0")                     X(STRUCT_OPS, "6.4") \
    X(NETFILTER, "6.4")                      X(TCX_INGRESS, "6.6")                    X(TCX_EGRESS, "6.6") \
    X(TRACE_UPROBE_MULTI, "6.6")             X(CGROUP_UNIX_CONNECT, "6.7")            X(CGROUP_UNIX_SENDMSG, "6.7") \
    X(CGROUP_UNIX_RECVMSG, "6.7")            X(CGROUP_UNIX_GETPEERNAME, "6.7")        X(CGROUP_UNIX_GETSOCKNAME, "6.7") \
    X(NETKIT_PRIMARY, "6.7")                 X(NETKIT_PEER, "6.7")                    X(TRACE_KPROBE_SESSION, "6.10") \
    X(TRACE_UPROBE_SESSION, "6.13")          X(TRACE_FSESSION, "7.0")                 X(TRACE_FENTRY_MULTI, "") \
    X(TRACE_FEXIT_MULTI, "")                 X(TRACE_FSESSION_MULTI, "")

#define RAWBPF_LINK_TYPES(X) \
    X(UNSPEC, "")                            X(RAW_TRACEPOINT, "5.7")                 X(TRACING, "5.7") \
    X(CGROUP, "5.7")                         X(ITER, "5.8")                           X(NETNS, "5.8") \
    X(XDP, "5.9")                            X(PERF_EVENT, "5.15")                    X(KPROBE_MULTI, "5.18") \
    X(STRUCT_OPS, "6.4")                     X(NETFILTER, "6.4")                      X(TCX, "6.6") \
    X(UPROBE_MULTI, "6.6")                   X(NETKIT, "6.7")                         X(SOCKMAP, "6.10") \
    X(TRACING_MULTI, "")
// clang-format on

#define RAWBPF_ENUMERATOR(name, ...) name,
/// BPF_PROG_TYPE_*, with the kernel's names and numbers (include/uapi/linux/bpf.h).
enum class ProgramType : uint32_t { RAWBPF_PROGRAM_TYPES(RAWBPF_ENUMERATOR) };
/// BPF_CGROUP_*, BPF_TRACE_* ...: the kernel's numbers; its names have BPF_ in front.
enum class AttachType : uint32_t { RAWBPF_ATTACH_TYPES(RAWBPF_ENUMERATOR) };
/// BPF_LINK_TYPE_*, with the kernel's names and numbers.
enum class LinkType : uint32_t { RAWBPF_LINK_TYPES(RAWBPF_ENUMERATOR) };
#undef RAWBPF_ENUMERATOR
#define RAWBPF_COUNT(...) +1
/// How many of each there are, UNSPEC included where there is one.
///@{
inline constexpr uint32_t kProgramTypeCount = RAWBPF_PROGRAM_TYPES(RAWBPF_COUNT);
inline constexpr uint32_t kAttachTypeCount = RAWBPF_ATTACH_TYPES(RAWBPF_COUNT);
inline constexpr uint32_t kLinkTypeCount = RAWBPF_LINK_TYPES(RAWBPF_COUNT);
///@}
#undef RAWBPF_COUNT

/// The name without BPF_PROG_TYPE_ or the like in front: program_type_name(7) is "PERF_EVENT". "?" for a number that isn't in the
/// list.
///@{
[[nodiscard]] std::string_view program_type_name(uint32_t type);
[[nodiscard]] std::string_view attach_type_name(uint32_t type);
[[nodiscard]] std::string_view link_type_name(uint32_t type);
[[nodiscard]] std::string_view map_type_name(uint32_t type);
///@}
/// The kernel version that brought it: "5.8". Empty: no release yet, UNSPEC, or a number that isn't in the list.
///@{
[[nodiscard]] std::string_view program_type_since(uint32_t type);
[[nodiscard]] std::string_view attach_type_since(uint32_t type);
[[nodiscard]] std::string_view link_type_since(uint32_t type);
[[nodiscard]] std::string_view map_type_since(uint32_t type);
///@}

} // namespace rawbpf::inline v0
