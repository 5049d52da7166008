// SPDX-License-Identifier: MIT
// The kernel's attach types, a row each: what programs of which type they are for, which link comes of them, and how a kernel is
// asked whether it has them. A new type is a new last row.
//
//      X(name, since, program, link, asked, usual, target)
//
//      name       BPF_ in front of it. The number is the position
//      since      the kernel that brought it; empty: no release has it yet
//      program    the type of the programs (program_types.h)
//      link       the type of the links (link_types.h), which also says what fields BPF_LINK_CREATE has for them; UNSPEC: none
//      asked      how probe_attach_type() finds out whether the kernel has it (AttachQuestion)
//      usual      true: the kernel loads a program of that type only with an expected attach type, and for a small one it is this
//      target     names in the kernel's BTF, of which a program to try needs one: functions, typedefs or structs that exist for the
//                 kernel's own tests or are almost never called; one blank between. Empty: it needs none
#pragma once

#include <cstdint>
#include <string_view>

#include "asm/link_types.h"
#include "asm/program_types.h"

namespace rawbpf::inline v0 {

/// How a kernel is asked whether it has an attach type. runtime/kernel/probe_attach.cpp explains each.
enum class AttachQuestion : uint8_t {
    link,       ///< BPF_LINK_CREATE with a target that isn't there: the link type's `refusal` says that the kernel has it
    classic,    ///< likewise by BPF_PROG_ATTACH
    hook,       ///< a function or typedef of the kernel's, attached for a moment
    iterator,   ///< the same by BPF_LINK_CREATE
    only_right, ///< loading takes this expected attach type and no other
    map_entry,  ///< a program in a map: its value must have room for one
    struct_ops, ///< a flag of the map
};

// clang-format off
#define RAWBPF_ATTACH_TYPES(X) \
    X(CGROUP_INET_INGRESS, "4.10", CGROUP_SKB, CGROUP, link, false, "") \
    X(CGROUP_INET_EGRESS, "4.10", CGROUP_SKB, CGROUP, link, false, "") \
    X(CGROUP_INET_SOCK_CREATE, "4.10", CGROUP_SOCK, CGROUP, link, true, "") \
    X(CGROUP_SOCK_OPS, "4.13", SOCK_OPS, CGROUP, link, true, "") \
    X(SK_SKB_STREAM_PARSER, "4.14", SK_SKB, SOCKMAP, classic, false, "") \
    X(SK_SKB_STREAM_VERDICT, "4.14", SK_SKB, SOCKMAP, classic, false, "") \
    X(CGROUP_DEVICE, "4.15", CGROUP_DEVICE, CGROUP, link, true, "") \
    X(SK_MSG_VERDICT, "4.17", SK_MSG, SOCKMAP, classic, false, "") \
    X(CGROUP_INET4_BIND, "4.17", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET6_BIND, "4.17", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET4_CONNECT, "4.17", CGROUP_SOCK_ADDR, CGROUP, link, true, "") \
    X(CGROUP_INET6_CONNECT, "4.17", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET4_POST_BIND, "4.17", CGROUP_SOCK, CGROUP, link, false, "") \
    X(CGROUP_INET6_POST_BIND, "4.17", CGROUP_SOCK, CGROUP, link, false, "") \
    X(CGROUP_UDP4_SENDMSG, "4.18", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UDP6_SENDMSG, "4.18", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(LIRC_MODE2, "4.18", LIRC_MODE2, UNSPEC, classic, false, "") \
    X(FLOW_DISSECTOR, "4.20", FLOW_DISSECTOR, NETNS, link, false, "") \
    X(CGROUP_SYSCTL, "5.2", CGROUP_SYSCTL, CGROUP, link, true, "") \
    X(CGROUP_UDP4_RECVMSG, "5.2", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UDP6_RECVMSG, "5.2", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_GETSOCKOPT, "5.3", CGROUP_SOCKOPT, CGROUP, link, true, "") \
    X(CGROUP_SETSOCKOPT, "5.3", CGROUP_SOCKOPT, CGROUP, link, false, "") \
    X(TRACE_RAW_TP, "5.5", TRACING, RAW_TRACEPOINT, hook, false, "btf_trace_sched_process_hang btf_trace_sched_process_exec") \
    X(TRACE_FENTRY, "5.5", TRACING, TRACING, hook, true, "bpf_fentry_test1") \
    X(TRACE_FEXIT, "5.5", TRACING, TRACING, hook, false, "bpf_fentry_test1") \
    X(MODIFY_RETURN, "5.7", TRACING, TRACING, hook, false, "bpf_modify_return_test") \
    X(LSM_MAC, "5.7", LSM, TRACING, hook, true, "bpf_lsm_path_chroot bpf_lsm_sb_umount") \
    X(TRACE_ITER, "5.8", TRACING, ITER, iterator, false, "bpf_iter_task bpf_iter_bpf_map") \
    X(CGROUP_INET4_GETPEERNAME, "5.8", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET6_GETPEERNAME, "5.8", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET4_GETSOCKNAME, "5.8", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_INET6_GETSOCKNAME, "5.8", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(XDP_DEVMAP, "5.8", XDP, UNSPEC, map_entry, false, "") \
    X(CGROUP_INET_SOCK_RELEASE, "5.9", CGROUP_SOCK, CGROUP, link, false, "") \
    X(XDP_CPUMAP, "5.9", XDP, UNSPEC, map_entry, false, "") \
    X(SK_LOOKUP, "5.9", SK_LOOKUP, NETNS, link, true, "") \
    X(XDP, "5.9", XDP, XDP, link, false, "") \
    X(SK_SKB_VERDICT, "5.13", SK_SKB, SOCKMAP, classic, false, "") \
    X(SK_REUSEPORT_SELECT, "5.14", SK_REUSEPORT, UNSPEC, only_right, false, "") \
    X(SK_REUSEPORT_SELECT_OR_MIGRATE, "5.14", SK_REUSEPORT, UNSPEC, only_right, false, "") \
    X(PERF_EVENT, "5.15", PERF_EVENT, PERF_EVENT, link, false, "") \
    X(TRACE_KPROBE_MULTI, "5.18", KPROBE, KPROBE_MULTI, link, false, "") \
    X(LSM_CGROUP, "6.0", LSM, CGROUP, link, false, "bpf_lsm_socket_bind") \
    X(STRUCT_OPS, "6.4", STRUCT_OPS, STRUCT_OPS, struct_ops, false, "") \
    X(NETFILTER, "6.4", NETFILTER, NETFILTER, link, true, "") \
    X(TCX_INGRESS, "6.6", SCHED_CLS, TCX, link, false, "") \
    X(TCX_EGRESS, "6.6", SCHED_CLS, TCX, link, false, "") \
    X(TRACE_UPROBE_MULTI, "6.6", KPROBE, UPROBE_MULTI, link, false, "") \
    X(CGROUP_UNIX_CONNECT, "6.7", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UNIX_SENDMSG, "6.7", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UNIX_RECVMSG, "6.7", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UNIX_GETPEERNAME, "6.7", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(CGROUP_UNIX_GETSOCKNAME, "6.7", CGROUP_SOCK_ADDR, CGROUP, link, false, "") \
    X(NETKIT_PRIMARY, "6.7", SCHED_CLS, NETKIT, link, false, "") \
    X(NETKIT_PEER, "6.7", SCHED_CLS, NETKIT, link, false, "") \
    X(TRACE_KPROBE_SESSION, "6.10", KPROBE, KPROBE_MULTI, link, false, "") \
    X(TRACE_UPROBE_SESSION, "6.13", KPROBE, UPROBE_MULTI, link, false, "") \
    X(TRACE_FSESSION, "7.0", TRACING, TRACING, hook, false, "bpf_fentry_test1") \
    X(TRACE_FENTRY_MULTI, "", TRACING, TRACING_MULTI, link, false, "") \
    X(TRACE_FEXIT_MULTI, "", TRACING, TRACING_MULTI, link, false, "") \
    X(TRACE_FSESSION_MULTI, "", TRACING, TRACING_MULTI, link, false, "")
// clang-format on

/// BPF_CGROUP_*, BPF_TRACE_* ...: the kernel's numbers; its names have BPF_ in front (include/uapi/linux/bpf.h).
enum class AttachType : uint32_t {
#define RAWBPF_ENUMERATOR(name, ...) name,
    RAWBPF_ATTACH_TYPES(RAWBPF_ENUMERATOR)
#undef RAWBPF_ENUMERATOR
};

/// What is known of an attach type.
struct AttachTypeRow {
    std::string_view name,   ///< "TRACE_FENTRY": without BPF_
        since;               ///< the kernel that brought it, "5.5"; empty where no release has it yet
    ProgramType program;     ///< the type of the programs that are attached in this way
    LinkType link;           ///< the type of the links that come of it; UNSPEC: there are none
    AttachQuestion asked;    ///< how a kernel is asked for it
    bool usual;              ///< a small program of that type is loaded with it
    std::string_view target; ///< what such a program needs of the kernel's BTF: one of these names; empty: nothing
};

/// The row of each attach type; its position is the type's number.
inline constexpr AttachTypeRow kAttachTypes[] = {
#define RAWBPF_ROW(name, since, program, link, asked, usual, target)                                                             \
    {#name, since, ProgramType::program, LinkType::link, AttachQuestion::asked, usual, target},
    RAWBPF_ATTACH_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// How many there are.
inline constexpr uint32_t kAttachTypeCount = sizeof kAttachTypes / sizeof *kAttachTypes;
static_assert(uint32_t(AttachType::XDP) == 37 &&
              uint32_t(AttachType::TRACE_UPROBE_SESSION) == 57); // a row dropped or doubled would shift the others

/// The row of a type that isn't in the table yet.
inline constexpr AttachTypeRow kNewAttachType{"?", "", ProgramType::UNSPEC, LinkType::UNSPEC, AttachQuestion::link, false, ""};
/// The row of a number of enum bpf_attach_type; kNewAttachType for one that isn't in the table.
[[nodiscard]] constexpr const AttachTypeRow &attach_type_row(uint32_t type) {
    return type < kAttachTypeCount ? kAttachTypes[type] : kNewAttachType;
}
/// The attach type that a small program of that type is loaded with; AttachType{0} where the kernel doesn't look at it.
[[nodiscard]] constexpr AttachType usual_attach_type(ProgramType program) {
    for (uint32_t i = 0; i < kAttachTypeCount; ++i)
        if (kAttachTypes[i].usual && kAttachTypes[i].program == program) return AttachType{i};
    return AttachType{0};
}
/// The first attach type whose links are of that type; kAttachTypeCount: none.
[[nodiscard]] constexpr uint32_t first_attach_type(LinkType link) {
    uint32_t i = 0;
    while (i < kAttachTypeCount && kAttachTypes[i].link != link) ++i;
    return i;
}

} // namespace rawbpf::inline v0
