// SPDX-License-Identifier: MIT
// The kernel's program types, a row each: everything that rawbpf knows of a type, for the loader and its messages, the probes,
// `exec`, `doctor` and all listings. A new type is a new last row. How its programs are attached is a row of attach_types.h; what
// the sections of its programs are called is one of section_names.cpp.
//
//      X(name, since, family, context, shown, run, value, returns)
//
//      name       BPF_PROG_TYPE_ in front of it. The number is the position
//      since      the kernel that brought it
//      family     what such programs are for, and so which privileges they need (ProgramFamily)
//      context    the struct that r1 points to at the start, as the kernel's BTF calls it (bpf_ctx_convert in kernel/bpf/btf.c);
//                 empty: there is no one type for it
//      shown      the context in messages, where that isn't "struct CONTEXT"
//      run        what BPF_PROG_TEST_RUN gives it (ProgramRun)
//      value      what a program returns that changes nothing and that the verifier takes: 0 for programs that trace, XDP_PASS,
//                 "allow" elsewhere
//      returns    what the values mean, where the verifier limits them; empty: it doesn't
#pragma once

#include <cstdint>
#include <string_view>

namespace rawbpf::inline v0 {

/// What programs are for. CAP_BPF is needed for all of them.
enum class ProgramFamily : uint8_t {
    plain,    ///< sockets and the like: nothing else is needed
    probe,    ///< they run at functions and events, and read the kernel's memory: CAP_PERFMON
    decision, ///< they read the kernel's memory, and decide for it (LSM, struct_ops): CAP_PERFMON
    network,  ///< networking and cgroups run them: CAP_NET_ADMIN (is_net_admin_prog_type() of the kernel)
    replaces, ///< any of these: both
};
/// What BPF_PROG_TEST_RUN runs such a program on.
enum class ProgramRun : uint8_t {
    memory,            ///< a packet, of which rawbpf keeps the first bytes to itself; or the kernel doesn't run it
    packet,            ///< a packet, which the program sees as it is
    arguments,         ///< numbers in the context, without a packet
    as_raw_tracepoint, ///< the kernel runs it only when something happens; as a raw tracepoint it can be run at any time
};

// clang-format off
#define RAWBPF_PROGRAM_TYPES(X) \
    X(UNSPEC, "", plain, "", "", memory, 1, "") \
    X(SOCKET_FILTER, "3.19", plain, "__sk_buff", "", memory, 1, "") \
    X(KPROBE, "4.1", probe, "bpf_user_pt_regs_t", "struct pt_regs", as_raw_tracepoint, 0, "") \
    X(SCHED_CLS, "4.1", network, "__sk_buff", "", packet, 1, "") \
    X(SCHED_ACT, "4.1", network, "__sk_buff", "", packet, 1, "") \
    X(TRACEPOINT, "4.7", probe, "", "the tracepoint's record (its format file in tracefs)", as_raw_tracepoint, 0, "") \
    X(XDP, "4.8", network, "xdp_md", "", packet, 2, "") \
    X(PERF_EVENT, "4.9", probe, "bpf_perf_event_data", "", as_raw_tracepoint, 0, "") \
    X(CGROUP_SKB, "4.10", plain, "__sk_buff", "", memory, 1, "0 drops the packet, 1 lets it pass (egress: 2 and 3 the same, with congestion)") \
    X(CGROUP_SOCK, "4.10", network, "bpf_sock", "", memory, 1, "0 refuses, 1 allows") \
    X(LWT_IN, "4.10", network, "__sk_buff", "", memory, 1, "") \
    X(LWT_OUT, "4.10", network, "__sk_buff", "", memory, 1, "") \
    X(LWT_XMIT, "4.10", network, "__sk_buff", "", memory, 1, "") \
    X(SOCK_OPS, "4.13", network, "bpf_sock_ops", "", memory, 1, "0 or 1; an answer is left in ctx->reply") \
    X(SK_SKB, "4.14", network, "__sk_buff", "", memory, 1, "") \
    X(CGROUP_DEVICE, "4.15", network, "bpf_cgroup_dev_ctx", "", memory, 1, "0 refuses, 1 allows") \
    X(SK_MSG, "4.17", network, "sk_msg_md", "", memory, 1, "") \
    X(RAW_TRACEPOINT, "4.17", probe, "bpf_raw_tracepoint_args", "", arguments, 0, "") \
    X(CGROUP_SOCK_ADDR, "4.17", network, "bpf_sock_addr", "", memory, 1, "0 refuses, 1 allows") \
    X(LWT_SEG6LOCAL, "4.18", network, "__sk_buff", "", memory, 1, "") \
    X(LIRC_MODE2, "4.18", plain, "", "the length of a pulse or a pause (__u32)", memory, 1, "") \
    X(SK_REUSEPORT, "4.19", plain, "sk_reuseport_md", "", memory, 1, "") \
    X(FLOW_DISSECTOR, "4.20", network, "__sk_buff", "", memory, 1, "BPF_OK, BPF_DROP or BPF_FLOW_DISSECTOR_CONTINUE") \
    X(CGROUP_SYSCTL, "5.2", network, "bpf_sysctl", "", memory, 1, "0 refuses, 1 allows") \
    X(RAW_TRACEPOINT_WRITABLE, "5.2", probe, "bpf_raw_tracepoint_args", "", as_raw_tracepoint, 0, "") \
    X(CGROUP_SOCKOPT, "5.3", network, "bpf_sockopt", "", memory, 1, "0 refuses, 1 allows") \
    X(TRACING, "5.5", probe, "", "", memory, 0, "fentry and fexit programs return 0") \
    X(STRUCT_OPS, "5.6", decision, "", "", memory, 1, "") \
    X(EXT, "5.6", replaces, "", "", memory, 1, "") \
    X(LSM, "5.7", decision, "", "", memory, 0, "0 allows, a negative errno refuses") \
    X(SK_LOOKUP, "5.9", plain, "bpf_sk_lookup", "", memory, 1, "0 (SK_DROP) drops, 1 (SK_PASS) goes on") \
    X(SYSCALL, "5.14", plain, "", "", arguments, 1, "") \
    X(NETFILTER, "6.4", network, "bpf_nf_ctx", "", memory, 1, "")
// clang-format on

/// BPF_PROG_TYPE_*, with the kernel's names and numbers (include/uapi/linux/bpf.h).
enum class ProgramType : uint32_t {
#define RAWBPF_ENUMERATOR(name, ...) name,
    RAWBPF_PROGRAM_TYPES(RAWBPF_ENUMERATOR)
#undef RAWBPF_ENUMERATOR
};

/// What is known of a program type.
struct ProgramTypeRow {
    std::string_view name,    ///< "XDP": without BPF_PROG_TYPE_
        since;                ///< the kernel that brought it, "4.8"; empty for UNSPEC
    ProgramFamily family;     ///< what such programs are for, and so which privileges they need
    std::string_view context; ///< "xdp_md": the struct that r1 points to; empty: there is no one type for it
    ProgramRun run;           ///< what BPF_PROG_TEST_RUN runs it on
    int32_t value;            ///< a return value that changes nothing
};
/// What only explanations say of a program type.
struct ProgramTypeWords {
    std::string_view shown, ///< the context in messages, where that isn't "struct CONTEXT"
        returns;            ///< what return values mean, as a phrase; empty: any will do
};

/// The row of each program type; its position is the type's number.
inline constexpr ProgramTypeRow kProgramTypes[] = {
#define RAWBPF_ROW(name, since, family, context, shown, run, value, returns)                                                     \
    {#name, since, ProgramFamily::family, context, ProgramRun::run, value},
    RAWBPF_PROGRAM_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// The words of each: apart, so that a loader without explanations doesn't have them.
inline constexpr ProgramTypeWords kProgramTypeWords[] = {
#define RAWBPF_ROW(name, since, family, context, shown, run, value, returns) {shown, returns},
    RAWBPF_PROGRAM_TYPES(RAWBPF_ROW)
#undef RAWBPF_ROW
};
/// How many there are, UNSPEC included.
inline constexpr uint32_t kProgramTypeCount = sizeof kProgramTypes / sizeof *kProgramTypes;
static_assert(uint32_t(ProgramType::PERF_EVENT) == 7 &&
              uint32_t(ProgramType::NETFILTER) == 32); // a row dropped or doubled would shift the others

/// The row of a type that isn't in the table yet: what is most likely.
inline constexpr ProgramTypeRow kNewProgramType{"?", "", ProgramFamily::plain, "", ProgramRun::memory, 1};
/// The row of a BPF_PROG_TYPE_ number; kNewProgramType for one that isn't in the table.
[[nodiscard]] constexpr const ProgramTypeRow &program_type_row(uint32_t type) {
    return type < kProgramTypeCount ? kProgramTypes[type] : kNewProgramType;
}
/// What explanations say of a BPF_PROG_TYPE_ number; empty for one that isn't in the table.
[[nodiscard]] constexpr ProgramTypeWords program_type_words(uint32_t type) {
    return type < kProgramTypeCount ? kProgramTypeWords[type] : ProgramTypeWords{};
}

} // namespace rawbpf::inline v0
