// The list of section names, and the search in it.
//
// A kind with a target matches its bare name and NAME/anything; one without matches only exactly ("xdp" is a program, "xdp/foo"
// is not: libbpf 1.0 became strict so that a typo is found at once). Order doesn't matter, since matches are whole words.
//
// Relies on: libbpf 1.8's section_defs, include/uapi/linux/bpf.h of 7.1.
#include "asm/section_names.h"

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

/// Only programs of type SYSCALL aren't attached but run: another row without an Attachment has forgotten it.
constexpr bool all_say_how() {
    for (const SectionKind &kind : kSections)
        if (kind.attachment == W::run && kind.type != P::SYSCALL) return false;
    return true;
}
/// ".s" at the end is libbpf's sign of programs that may sleep; SYSCALL's always may.
constexpr bool all_sleep_that_say_so() {
    for (const SectionKind &kind : kSections)
        if (kind.sleepable != (kind.name.ends_with(".s") || kind.type == P::SYSCALL)) return false;
    return true;
}
constexpr bool all_differ() {
    for (const SectionKind &kind : kSections)
        for (const SectionKind *other = &kind + 1; other < std::end(kSections); ++other)
            if (kind.name == other->name) return false;
    return true;
}
static_assert(all_say_how(), "a section name needs its Attachment: the fifth column");
static_assert(all_sleep_that_say_so(), "a section name that ends in .s is sleepable: the sixth column is true, and only there");
static_assert(all_differ(), "a section name is there twice");

} // namespace

std::span<const SectionKind> section_kinds() { return kSections; }

const SectionKind *find_section_kind(std::string_view section) {
    if (section.starts_with('?')) section.remove_prefix(1);
    for (const SectionKind &kind : kSections) {
        if (!section.starts_with(kind.name)) continue;
        std::string_view rest = section.substr(kind.name.size());
        if (rest.empty() || (kind.target != T::none && rest.front() == '/')) return &kind;
    }
    return nullptr;
}

} // namespace rawbpf::inline v0
