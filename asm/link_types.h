// SPDX-License-Identifier: MIT
// The kernel's link types, a row each. A new type is a new last row, and every switch over LinkType is told by the compiler.
//
//      X(name, since, refusal)
//
//      name       BPF_LINK_TYPE_ in front of it. The number is the position
//      since      the kernel that brought it; empty: no release has it yet
//      refusal    the errno for a link of that type to something that isn't there, from a kernel that knows the type: it is what
//                 probe_attach_type() asks for (runtime/kernel/probe_attach.cpp). 0: it is tried in another way
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0 {

// clang-format off
#define RAWBPF_LINK_TYPES(X) \
    X(UNSPEC, "", 0) \
    X(RAW_TRACEPOINT, "5.7", 0) \
    X(TRACING, "5.7", 0) \
    X(CGROUP, "5.7", EBADF) \
    X(ITER, "5.8", 0) \
    X(NETNS, "5.8", EBADF) \
    X(XDP, "5.9", EOPNOTSUPP) \
    X(PERF_EVENT, "5.15", EBADF) \
    X(KPROBE_MULTI, "5.18", EFAULT) \
    X(STRUCT_OPS, "6.4", 0) \
    X(NETFILTER, "6.4", EAFNOSUPPORT) \
    X(TCX, "6.6", ENODEV) \
    X(UPROBE_MULTI, "6.6", EBADF) \
    X(NETKIT, "6.7", ENODEV) \
    X(SOCKMAP, "6.10", EBADF) \
    X(TRACING_MULTI, "", EFAULT)
// clang-format on

/// BPF_LINK_TYPE_*, with the kernel's names and numbers (include/uapi/linux/bpf.h).
enum class LinkType : uint32_t {
#define RAWBPF_ENUMERATOR(name, ...) name,
    RAWBPF_LINK_TYPES(RAWBPF_ENUMERATOR)
#undef RAWBPF_ENUMERATOR
};

/// What is known of a link type.
struct LinkTypeRow {
    std::string_view name, ///< "XDP": without BPF_LINK_TYPE_
        since;             ///< the kernel that brought it, "5.9"; empty for UNSPEC and where no release has it yet
    int refusal;           ///< the errno that a link to nothing gets from a kernel that knows the type; 0: it is tried otherwise
};

/// The row of each link type; its position is the type's number.
inline constexpr LinkTypeRow kLinkTypes[] = {
#define RAWBPF_ROW(name, since, refusal) {#name, since, refusal},
    RAWBPF_LINK_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// How many there are, UNSPEC included.
inline constexpr uint32_t kLinkTypeCount = sizeof kLinkTypes / sizeof *kLinkTypes;
static_assert(uint32_t(LinkType::PERF_EVENT) == 7 &&
              uint32_t(LinkType::NETKIT) == 13); // a row dropped or doubled would shift the others

/// The row of a type that isn't in the table yet.
inline constexpr LinkTypeRow kNewLinkType{"?", "", 0};
/// The row of a BPF_LINK_TYPE_ number; kNewLinkType for one that isn't in the table.
[[nodiscard]] constexpr const LinkTypeRow &link_type_row(uint32_t type) {
    return type < kLinkTypeCount ? kLinkTypes[type] : kNewLinkType;
}

} // namespace rawbpf::inline v0
