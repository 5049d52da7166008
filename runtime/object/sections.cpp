// The list of section names, and the search in it.
//
// A kind with a target matches its bare name and NAME/anything; one without matches only exactly ("xdp" is a program, "xdp/foo"
// is not: libbpf 1.0 became strict so that a typo is found at once). Order doesn't matter, since matches are whole words.
//
// Relies on: libbpf 1.8's section_defs, include/uapi/linux/bpf.h of 7.1.
#include "runtime/object/sections.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

namespace {

using P = ProgramType;
using A = AttachType;
using T = SectionTarget;
using W = Attachment;
constexpr A kNone{}; // a program type without attach types

// clang-format off
constexpr SectionKind kSections[] = {
    {"socket", P::SOCKET_FILTER, kNone, T::none, W::socket},
    {"sk_reuseport/migrate", P::SK_REUSEPORT, A::SK_REUSEPORT_SELECT_OR_MIGRATE, T::none, W::reuseport},
    {"sk_reuseport", P::SK_REUSEPORT, A::SK_REUSEPORT_SELECT, T::none, W::reuseport},
    {"kprobe", P::KPROBE, kNone, T::kernel_function, W::kprobe},
    {"uprobe", P::KPROBE, kNone, T::user_function, W::uprobe},
    {"uprobe.s", P::KPROBE, kNone, T::user_function, W::uprobe, true},
    {"kretprobe", P::KPROBE, kNone, T::kernel_function, W::kretprobe},
    {"uretprobe", P::KPROBE, kNone, T::user_function, W::uretprobe},
    {"uretprobe.s", P::KPROBE, kNone, T::user_function, W::uretprobe, true},
    {"kprobe.multi", P::KPROBE, A::TRACE_KPROBE_MULTI, T::kernel_function, W::kprobe_multi},
    {"kretprobe.multi", P::KPROBE, A::TRACE_KPROBE_MULTI, T::kernel_function, W::kretprobe_multi},
    {"kprobe.session", P::KPROBE, A::TRACE_KPROBE_SESSION, T::kernel_function, W::kprobe_session},
    {"uprobe.multi", P::KPROBE, A::TRACE_UPROBE_MULTI, T::user_function, W::uprobe_multi},
    {"uretprobe.multi", P::KPROBE, A::TRACE_UPROBE_MULTI, T::user_function, W::uretprobe_multi},
    {"uprobe.session", P::KPROBE, A::TRACE_UPROBE_SESSION, T::user_function, W::uprobe_session},
    {"uprobe.multi.s", P::KPROBE, A::TRACE_UPROBE_MULTI, T::user_function, W::uprobe_multi, true},
    {"uretprobe.multi.s", P::KPROBE, A::TRACE_UPROBE_MULTI, T::user_function, W::uretprobe_multi, true},
    {"uprobe.session.s", P::KPROBE, A::TRACE_UPROBE_SESSION, T::user_function, W::uprobe_session, true},
    {"ksyscall", P::KPROBE, kNone, T::syscall, W::ksyscall},
    {"kretsyscall", P::KPROBE, kNone, T::syscall, W::kretsyscall},
    {"usdt", P::KPROBE, kNone, T::usdt, W::usdt},
    {"usdt.s", P::KPROBE, kNone, T::usdt, W::usdt, true},
    {"tc/ingress", P::SCHED_CLS, A::TCX_INGRESS, T::none, W::tcx},
    {"tc/egress", P::SCHED_CLS, A::TCX_EGRESS, T::none, W::tcx},
    {"tcx/ingress", P::SCHED_CLS, A::TCX_INGRESS, T::none, W::tcx},
    {"tcx/egress", P::SCHED_CLS, A::TCX_EGRESS, T::none, W::tcx},
    {"tc", P::SCHED_CLS, kNone, T::none, W::tc},
    {"classifier", P::SCHED_CLS, kNone, T::none, W::tc},
    {"action", P::SCHED_ACT, kNone, T::none, W::action},
    {"netkit/primary", P::SCHED_CLS, A::NETKIT_PRIMARY, T::none, W::netkit},
    {"netkit/peer", P::SCHED_CLS, A::NETKIT_PEER, T::none, W::netkit},
    {"tracepoint", P::TRACEPOINT, kNone, T::tracepoint, W::tracepoint},
    {"tp", P::TRACEPOINT, kNone, T::tracepoint, W::tracepoint},
    {"tracepoint.s", P::TRACEPOINT, kNone, T::tracepoint, W::tracepoint, true},
    {"tp.s", P::TRACEPOINT, kNone, T::tracepoint, W::tracepoint, true},
    {"raw_tracepoint", P::RAW_TRACEPOINT, kNone, T::raw_tracepoint, W::raw_tracepoint},
    {"raw_tp", P::RAW_TRACEPOINT, kNone, T::raw_tracepoint, W::raw_tracepoint},
    {"raw_tracepoint.s", P::RAW_TRACEPOINT, kNone, T::raw_tracepoint, W::raw_tracepoint, true},
    {"raw_tp.s", P::RAW_TRACEPOINT, kNone, T::raw_tracepoint, W::raw_tracepoint, true},
    {"raw_tracepoint.w", P::RAW_TRACEPOINT_WRITABLE, kNone, T::raw_tracepoint, W::raw_tracepoint},
    {"raw_tp.w", P::RAW_TRACEPOINT_WRITABLE, kNone, T::raw_tracepoint, W::raw_tracepoint},
    {"tp_btf", P::TRACING, A::TRACE_RAW_TP, T::btf_tracepoint, W::trampoline},
    {"tp_btf.s", P::TRACING, A::TRACE_RAW_TP, T::btf_tracepoint, W::trampoline, true},
    {"fentry", P::TRACING, A::TRACE_FENTRY, T::btf_function, W::trampoline},
    {"fmod_ret", P::TRACING, A::MODIFY_RETURN, T::btf_function, W::trampoline},
    {"fexit", P::TRACING, A::TRACE_FEXIT, T::btf_function, W::trampoline},
    {"fentry.s", P::TRACING, A::TRACE_FENTRY, T::btf_function, W::trampoline, true},
    {"fmod_ret.s", P::TRACING, A::MODIFY_RETURN, T::btf_function, W::trampoline, true},
    {"fexit.s", P::TRACING, A::TRACE_FEXIT, T::btf_function, W::trampoline, true},
    {"fsession", P::TRACING, A::TRACE_FSESSION, T::btf_function, W::trampoline},
    {"fsession.s", P::TRACING, A::TRACE_FSESSION, T::btf_function, W::trampoline, true},
    {"fsession.multi", P::TRACING, A::TRACE_FSESSION_MULTI, T::kernel_function, W::trampoline_multi},
    {"fsession.multi.s", P::TRACING, A::TRACE_FSESSION_MULTI, T::kernel_function, W::trampoline_multi, true},
    {"fentry.multi", P::TRACING, A::TRACE_FENTRY_MULTI, T::kernel_function, W::trampoline_multi},
    {"fexit.multi", P::TRACING, A::TRACE_FEXIT_MULTI, T::kernel_function, W::trampoline_multi},
    {"fentry.multi.s", P::TRACING, A::TRACE_FENTRY_MULTI, T::kernel_function, W::trampoline_multi, true},
    {"fexit.multi.s", P::TRACING, A::TRACE_FEXIT_MULTI, T::kernel_function, W::trampoline_multi, true},
    {"freplace", P::EXT, kNone, T::program, W::replace},
    {"lsm", P::LSM, A::LSM_MAC, T::lsm_hook, W::trampoline},
    {"lsm.s", P::LSM, A::LSM_MAC, T::lsm_hook, W::trampoline, true},
    {"lsm_cgroup", P::LSM, A::LSM_CGROUP, T::lsm_hook, W::cgroup},
    {"iter", P::TRACING, A::TRACE_ITER, T::iterator, W::iterator},
    {"iter.s", P::TRACING, A::TRACE_ITER, T::iterator, W::iterator, true},
    {"syscall", P::SYSCALL, kNone, T::none, W::run, true},
    {"xdp.frags/devmap", P::XDP, A::XDP_DEVMAP, T::none, W::map_entry, false, true},
    {"xdp/devmap", P::XDP, A::XDP_DEVMAP, T::none, W::map_entry},
    {"xdp.frags/cpumap", P::XDP, A::XDP_CPUMAP, T::none, W::map_entry, false, true},
    {"xdp/cpumap", P::XDP, A::XDP_CPUMAP, T::none, W::map_entry},
    {"xdp.frags", P::XDP, A::XDP, T::none, W::xdp, false, true},
    {"xdp", P::XDP, A::XDP, T::none, W::xdp},
    {"perf_event", P::PERF_EVENT, kNone, T::none, W::perf_event},
    {"lwt_in", P::LWT_IN, kNone, T::none, W::route},
    {"lwt_out", P::LWT_OUT, kNone, T::none, W::route},
    {"lwt_xmit", P::LWT_XMIT, kNone, T::none, W::route},
    {"lwt_seg6local", P::LWT_SEG6LOCAL, kNone, T::none, W::route},
    {"sockops", P::SOCK_OPS, A::CGROUP_SOCK_OPS, T::none, W::cgroup},
    {"sk_skb/stream_parser", P::SK_SKB, A::SK_SKB_STREAM_PARSER, T::none, W::socket_map},
    {"sk_skb/stream_verdict", P::SK_SKB, A::SK_SKB_STREAM_VERDICT, T::none, W::socket_map},
    {"sk_skb/verdict", P::SK_SKB, A::SK_SKB_VERDICT, T::none, W::socket_map},
    {"sk_skb", P::SK_SKB, kNone, T::none, W::socket_map},
    {"sk_msg", P::SK_MSG, A::SK_MSG_VERDICT, T::none, W::socket_map},
    {"lirc_mode2", P::LIRC_MODE2, A::LIRC_MODE2, T::none, W::lirc},
    {"flow_dissector", P::FLOW_DISSECTOR, A::FLOW_DISSECTOR, T::none, W::network_namespace},
    {"cgroup_skb/ingress", P::CGROUP_SKB, A::CGROUP_INET_INGRESS, T::none, W::cgroup},
    {"cgroup_skb/egress", P::CGROUP_SKB, A::CGROUP_INET_EGRESS, T::none, W::cgroup},
    {"cgroup/skb", P::CGROUP_SKB, kNone, T::none, W::cgroup},
    {"cgroup/sock_create", P::CGROUP_SOCK, A::CGROUP_INET_SOCK_CREATE, T::none, W::cgroup},
    {"cgroup/sock_release", P::CGROUP_SOCK, A::CGROUP_INET_SOCK_RELEASE, T::none, W::cgroup},
    {"cgroup/sock", P::CGROUP_SOCK, A::CGROUP_INET_SOCK_CREATE, T::none, W::cgroup},
    {"cgroup/post_bind4", P::CGROUP_SOCK, A::CGROUP_INET4_POST_BIND, T::none, W::cgroup},
    {"cgroup/post_bind6", P::CGROUP_SOCK, A::CGROUP_INET6_POST_BIND, T::none, W::cgroup},
    {"cgroup/bind4", P::CGROUP_SOCK_ADDR, A::CGROUP_INET4_BIND, T::none, W::cgroup},
    {"cgroup/bind6", P::CGROUP_SOCK_ADDR, A::CGROUP_INET6_BIND, T::none, W::cgroup},
    {"cgroup/connect4", P::CGROUP_SOCK_ADDR, A::CGROUP_INET4_CONNECT, T::none, W::cgroup},
    {"cgroup/connect6", P::CGROUP_SOCK_ADDR, A::CGROUP_INET6_CONNECT, T::none, W::cgroup},
    {"cgroup/connect_unix", P::CGROUP_SOCK_ADDR, A::CGROUP_UNIX_CONNECT, T::none, W::cgroup},
    {"cgroup/sendmsg4", P::CGROUP_SOCK_ADDR, A::CGROUP_UDP4_SENDMSG, T::none, W::cgroup},
    {"cgroup/sendmsg6", P::CGROUP_SOCK_ADDR, A::CGROUP_UDP6_SENDMSG, T::none, W::cgroup},
    {"cgroup/sendmsg_unix", P::CGROUP_SOCK_ADDR, A::CGROUP_UNIX_SENDMSG, T::none, W::cgroup},
    {"cgroup/recvmsg4", P::CGROUP_SOCK_ADDR, A::CGROUP_UDP4_RECVMSG, T::none, W::cgroup},
    {"cgroup/recvmsg6", P::CGROUP_SOCK_ADDR, A::CGROUP_UDP6_RECVMSG, T::none, W::cgroup},
    {"cgroup/recvmsg_unix", P::CGROUP_SOCK_ADDR, A::CGROUP_UNIX_RECVMSG, T::none, W::cgroup},
    {"cgroup/getpeername4", P::CGROUP_SOCK_ADDR, A::CGROUP_INET4_GETPEERNAME, T::none, W::cgroup},
    {"cgroup/getpeername6", P::CGROUP_SOCK_ADDR, A::CGROUP_INET6_GETPEERNAME, T::none, W::cgroup},
    {"cgroup/getpeername_unix", P::CGROUP_SOCK_ADDR, A::CGROUP_UNIX_GETPEERNAME, T::none, W::cgroup},
    {"cgroup/getsockname4", P::CGROUP_SOCK_ADDR, A::CGROUP_INET4_GETSOCKNAME, T::none, W::cgroup},
    {"cgroup/getsockname6", P::CGROUP_SOCK_ADDR, A::CGROUP_INET6_GETSOCKNAME, T::none, W::cgroup},
    {"cgroup/getsockname_unix", P::CGROUP_SOCK_ADDR, A::CGROUP_UNIX_GETSOCKNAME, T::none, W::cgroup},
    {"cgroup/sysctl", P::CGROUP_SYSCTL, A::CGROUP_SYSCTL, T::none, W::cgroup},
    {"cgroup/getsockopt", P::CGROUP_SOCKOPT, A::CGROUP_GETSOCKOPT, T::none, W::cgroup},
    {"cgroup/setsockopt", P::CGROUP_SOCKOPT, A::CGROUP_SETSOCKOPT, T::none, W::cgroup},
    {"cgroup/dev", P::CGROUP_DEVICE, A::CGROUP_DEVICE, T::none, W::cgroup},
    {"struct_ops", P::STRUCT_OPS, kNone, T::struct_ops, W::struct_ops},
    {"struct_ops.s", P::STRUCT_OPS, kNone, T::struct_ops, W::struct_ops, true},
    {"sk_lookup", P::SK_LOOKUP, A::SK_LOOKUP, T::none, W::network_namespace},
    {"netfilter", P::NETFILTER, A::NETFILTER, T::none, W::netfilter},
};
// clang-format on

std::string_view without_mark(std::string_view section) {
    if (section.starts_with('?')) section.remove_prefix(1);
    return section;
}

/// Levenshtein distance, for words as short as section names.
size_t distance(std::string_view a, std::string_view b) {
    std::array<size_t, 65> row;
    if (b.size() >= row.size()) return row.size();
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); ++j) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

} // namespace

std::span<const SectionKind> section_kinds() { return kSections; }

const SectionKind *find_section_kind(std::string_view section) {
    section = without_mark(section);
    for (const SectionKind &kind : kSections) {
        if (!section.starts_with(kind.name)) continue;
        std::string_view rest = section.substr(kind.name.size());
        if (rest.empty() || (kind.target != T::none && rest.front() == '/')) return &kind;
    }
    return nullptr;
}

std::string_view section_target(const SectionKind &kind, std::string_view section) {
    section = without_mark(section);
    return section.size() > kind.name.size() ? section.substr(kind.name.size() + 1) : std::string_view();
}

std::string_view attachment_needs(Attachment attachment) {
    switch (attachment) {
    case W::perf_event: return "a perf event";
    case W::xdp:
    case W::tcx:
    case W::tc: return "a network interface";
    case W::netkit: return "a netkit interface";
    case W::cgroup: return "a cgroup (v2)";
    case W::network_namespace: return "a network namespace";
    case W::socket_map: return "a SOCKMAP or SOCKHASH";
    case W::netfilter: return "a protocol family and a hook";
    case W::lirc: return "an infrared device";
    case W::socket: return "a socket";
    case W::reuseport: return "a socket with SO_REUSEPORT";
    case W::route: return "a route";
    case W::action: return "a tc filter";
    case W::map_entry: return "an entry of a map";
    case W::run: return "somebody to run it";
    default: return {};
    }
}

bool needs_attach_btf(const SectionKind &kind) {
    switch (kind.target) {
    case T::btf_function:
    case T::btf_tracepoint:
    case T::lsm_hook:
    case T::iterator:
    case T::program: return true;
    default: return false;
    }
}

std::string explain_unknown_section(std::string_view section) {
    section = without_mark(section).substr(0, 64);
    const std::string_view word = section.substr(0, section.find('/'));
    auto shown = [](const SectionKind &kind) { return format("{}{}", kind.name, kind.target == T::none ? "" : "/..."); };
    const std::string unknown = format("section name \"{}\" says no program type", section);
    // "xdp_router": a known name with more behind it, which is how programs are named, not sections.
    const SectionKind *begun = nullptr;
    for (const SectionKind &kind : kSections)
        if (word.size() > kind.name.size() && word.starts_with(kind.name) && (!begun || kind.name.size() > begun->name.size()))
            begun = &kind;
    if (begun) return format("{}; \"{}\" does: SEC(\"{}\")", unknown, begun->name, shown(*begun));
    const SectionKind *best[2] = {};
    size_t score[2] = {SIZE_MAX, SIZE_MAX};
    constexpr size_t kAnotherWord = 8; // what begins with the same word is nearer than what only looks alike
    const size_t near = std::max<size_t>(2, word.size() / 3);
    for (const SectionKind &kind : kSections) {
        const size_t apart = std::min(distance(section, kind.name), distance(word, kind.name));
        const bool same_word = kind.name.substr(0, kind.name.find('/')) == word;
        if (!same_word && apart > near) continue;
        const size_t d = apart + (same_word ? 0 : kAnotherWord);
        if (d < score[0]) {
            best[1] = std::exchange(best[0], &kind);
            score[1] = std::exchange(score[0], d);
        } else if (d < score[1]) {
            best[1] = &kind;
            score[1] = d;
        }
    }
    if (!best[0])
        return format(
            "{}, and none is near: sections are called after what their programs do, as kprobe/..., tracepoint/..., uprobe/..., "
            "fentry/..., xdp, tc, socket, cgroup_skb/egress, perf_event, iter/..., lsm/..., syscall",
            unknown);
    if (!best[1]) return format("{}; the nearest known is \"{}\"", unknown, shown(*best[0]));
    return format("{}; the nearest known are \"{}\" and \"{}\"", unknown, shown(*best[0]), shown(*best[1]));
}

} // namespace rawbpf::inline v0
