// What a verdict depends on by the type of program, one row for each type: which helpers it may call, how it may use packets,
// what it may return, and the name of its context. The name has two uses: a kernel function that takes the context names one of
// these structs, and so does a global function of the program.
//
// Sources: resolve_prog_type(), may_access_direct_pkt_data(), check_return_code() of kernel/bpf/verifier.c and bpf_ctx_convert of
// kernel/bpf/btf.c, 6.18.
#include "asm/attach_types.h"
#include "asm/kinds.h"
#include "runtime/verifier/context.h"

namespace rawbpf::inline v0::verifier {

namespace {

using P = ProgramType;
using A = AttachType;
using U = PacketUse;

constexpr std::optional<Range<int32_t>> kAny;
constexpr std::optional<Range<int32_t>> kZeroOrOne = Range<int32_t>{0, 1};

constexpr ProgramRow kPrograms[] = {
    {uint32_t(P::SOCKET_FILTER), 'F', U::none, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::KPROBE), 'K', U::none, kAny, "pt_regs", "pt_regs"},
    {uint32_t(P::SCHED_CLS), 'S', U::write, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::SCHED_ACT), 'S', U::write, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::TRACEPOINT), 'T', U::none, kAny, "", ""},
    {uint32_t(P::XDP), 'X', U::write, kAny, "xdp_md", "xdp_buff"},
    {uint32_t(P::PERF_EVENT), 'P', U::none, kAny, "bpf_perf_event_data", "bpf_perf_event_data_kern"},
    {uint32_t(P::CGROUP_SKB), 'C', U::read, kZeroOrOne, "__sk_buff", "sk_buff"},
    {uint32_t(P::CGROUP_SOCK), 'A', U::none, kZeroOrOne, "bpf_sock", "sock"},
    {uint32_t(P::LWT_IN), 'i', U::read, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::LWT_OUT), 'o', U::read, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::LWT_XMIT), 'x', U::write, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::SOCK_OPS), 'O', U::none, kZeroOrOne, "bpf_sock_ops", "bpf_sock_ops_kern"},
    {uint32_t(P::SK_SKB), 'B', U::write, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::CGROUP_DEVICE), 'V', U::none, kZeroOrOne, "bpf_cgroup_dev_ctx", "bpf_cgroup_dev_ctx"},
    {uint32_t(P::SK_MSG), 'M', U::write, kAny, "sk_msg_md", "sk_msg"},
    {uint32_t(P::RAW_TRACEPOINT), 'R', U::none, kAny, "bpf_raw_tracepoint_args", "u64"},
    {uint32_t(P::CGROUP_SOCK_ADDR), 'D', U::none, kZeroOrOne, "bpf_sock_addr", "bpf_sock_addr_kern"},
    {uint32_t(P::LWT_SEG6LOCAL), 's', U::read, kAny, "__sk_buff", "sk_buff"},
    {uint32_t(P::SK_REUSEPORT), 'U', U::read, kAny, "sk_reuseport_md", "sk_reuseport_kern"},
    {uint32_t(P::FLOW_DISSECTOR), 'I', U::read, kAny, "__sk_buff", "bpf_flow_dissector"},
    {uint32_t(P::CGROUP_SYSCTL), 'Y', U::none, kZeroOrOne, "bpf_sysctl", "bpf_sysctl_kern"},
    {uint32_t(P::RAW_TRACEPOINT_WRITABLE), 'R', U::none, kAny, "bpf_raw_tracepoint_args", "u64"},
    {uint32_t(P::CGROUP_SOCKOPT), 'N', U::write, kZeroOrOne, "bpf_sockopt", "bpf_sockopt_kern"},
    {uint32_t(P::TRACING), 'G', U::none, kAny, "", ""},
    {uint32_t(P::STRUCT_OPS), 'J', U::none, kAny, "", ""},
    {uint32_t(P::LSM), 'Z', U::none, kAny, "", ""},
    {uint32_t(P::SK_LOOKUP), 'L', U::none, kZeroOrOne, "bpf_sk_lookup", "bpf_sk_lookup_kern"},
    {uint32_t(P::SYSCALL), 'Q', U::none, kAny, "", ""},
    {uint32_t(P::NETFILTER), 'E', U::none, kZeroOrOne, "bpf_nf_ctx", "bpf_nf_ctx"},
};

bool attaches(const ProgramSpec &program, std::initializer_list<A> types) {
    for (A type : types)
        if (program.expected_attach_type == static_cast<uint32_t>(type)) return true;
    return false;
}

} // namespace

const ProgramRow *program_row(uint32_t program_type) {
    for (const ProgramRow &row : kPrograms)
        if (row.type == program_type) return &row;
    return nullptr;
}

std::string_view not_modelled(const ProgramSpec &program) {
    return program_row(program.type) ? std::string_view() : program_type_name(program.type);
}

PacketUse packet_use(uint32_t program_type) {
    const ProgramRow *row = program_row(program_type);
    return row ? row->packet : PacketUse::none;
}

std::optional<Range<int32_t>> returns_of(const ProgramSpec &program) {
    switch (static_cast<P>(program.type)) {
    case P::CGROUP_SKB:
        if (attaches(program, {A::CGROUP_INET_EGRESS})) return Range<int32_t>{0, 3};
        return kZeroOrOne;
    case P::CGROUP_SOCK_ADDR:
        if (attaches(program, {A::CGROUP_UDP4_RECVMSG, A::CGROUP_UDP6_RECVMSG, A::CGROUP_UNIX_RECVMSG,
                               A::CGROUP_INET4_GETPEERNAME, A::CGROUP_INET6_GETPEERNAME, A::CGROUP_UNIX_GETPEERNAME,
                               A::CGROUP_INET4_GETSOCKNAME, A::CGROUP_INET6_GETSOCKNAME, A::CGROUP_UNIX_GETSOCKNAME}))
            return Range<int32_t>{1, 1};
        if (attaches(program, {A::CGROUP_INET4_BIND, A::CGROUP_INET6_BIND})) return Range<int32_t>{0, 3};
        return kZeroOrOne;
    case P::TRACING:
        if (attaches(program, {A::TRACE_FENTRY, A::TRACE_FEXIT})) return Range<int32_t>{0, 0};
        if (attaches(program, {A::TRACE_ITER})) return kZeroOrOne;
        return kAny;
    case P::KPROBE:
        if (attaches(program, {A::TRACE_KPROBE_SESSION, A::TRACE_UPROBE_SESSION})) return kZeroOrOne;
        return kAny;
    default: break;
    }
    const ProgramRow *row = program_row(program.type);
    return row ? row->returns : kAny;
}

char helper_set(const ProgramSpec &program) {
    if (static_cast<P>(program.type) == P::TRACING) {
        if (attaches(program, {A::TRACE_ITER})) return 't';
        if (!attaches(program, {A::TRACE_RAW_TP})) return 'g';
    }
    const ProgramRow *row = program_row(program.type);
    return row ? row->set : '\0';
}

} // namespace rawbpf::inline v0::verifier
