// Helpers: loads a program of two instructions, `call HELPER; exit`, and reads the verifier's answer.
//
// The arguments are not set, so the verifier refuses the program in any case; its log says why:
//
//      invalid func unknown#209                                   a number above all that this kernel knows
//      unknown func bpf_get_stack#67                              known, but not to this type of program
//      program of this type cannot use helper bpf_get_stack#67    the same since 6.9
//      helper call is not allowed in probe                        known to the type, not at this target
//      R1 !read_ok, R1 type=ctx expected=map_ptr ...              there it is
//
// Which helpers exist depends on the type, on what it is attached to, on sleepable or not, on privileges and on lockdown
// (bpf_probe_read_kernel() disappears under lockdown=confidentiality). So the probe tries one representative type after
// another until one may call the helper. The first in the list know most helpers, and a helper whose name says which type it
// belongs to (bpf_sysctl_...) is tried there first. That needs about two loads per helper; `rawbpf doctor` waits for all of
// them.
#include "runtime/kernel/probe_helpers.h"

#include <map>
#include <vector>

#include <linux/bpf.h>

#include "asm/helpers.h"
#include "runtime/base/format.h"
#include "runtime/base/remembering.h"
#include "runtime/kernel/probe_load.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

struct Representative {
    ProgramType type;
    AttachType attach;
    bool sleepable;
    std::string_view target; ///< in the kernel's BTF; empty: needs none
    std::string_view words;  ///< "may be called from ..."
};
using A = AttachType;
using P = ProgramType;
constexpr A kNone{0};
constexpr Representative kRepresentatives[] = {
    {P::KPROBE, kNone, false, "", "kprobe"},
    {P::SCHED_CLS, kNone, false, "", "sched_cls"},
    {P::XDP, kNone, false, "", "xdp"},
    {P::PERF_EVENT, kNone, false, "", "perf_event"},
    {P::SYSCALL, kNone, true, "", "syscall"},
    {P::LWT_XMIT, kNone, false, "", "lwt_xmit"},
    {P::LWT_IN, kNone, false, "", "lwt_in"},
    {P::LWT_SEG6LOCAL, kNone, false, "", "lwt_seg6local"},
    {P::SK_SKB, kNone, false, "", "sk_skb"},
    {P::SK_MSG, kNone, false, "", "sk_msg"},
    {P::SOCK_OPS, A::CGROUP_SOCK_OPS, false, "", "sock_ops"},
    {P::SK_REUSEPORT, A::SK_REUSEPORT_SELECT, false, "", "sk_reuseport"},
    {P::SK_LOOKUP, A::SK_LOOKUP, false, "", "sk_lookup"},
    {P::CGROUP_SOCK_ADDR, A::CGROUP_INET4_CONNECT, false, "", "cgroup_sock_addr"},
    {P::CGROUP_SOCKOPT, A::CGROUP_SETSOCKOPT, false, "", "cgroup_sockopt"},
    {P::CGROUP_SYSCTL, A::CGROUP_SYSCTL, false, "", "cgroup_sysctl"},
    {P::CGROUP_SKB, A::CGROUP_INET_INGRESS, false, "", "cgroup_skb"},
    {P::CGROUP_SOCK, A::CGROUP_INET_SOCK_CREATE, false, "", "cgroup_sock"},
    {P::LIRC_MODE2, kNone, false, "", "lirc_mode2"},
    {P::RAW_TRACEPOINT, kNone, false, "", "raw_tracepoint"},
    {P::TRACING, A::TRACE_ITER, false, "bpf_iter_task", "iterators"},
    {P::TRACING, A::TRACE_FEXIT, false, "bpf_fentry_test1", "fexit"},
    {P::TRACING, A::TRACE_RAW_TP, false, "btf_trace_sched_process_exec", "tp_btf"},
    {P::LSM, A::LSM_MAC, true, "bpf_lsm_bprm_creds_for_exec", "sleepable lsm"},
    {P::STRUCT_OPS, kNone, false, "tcp_congestion_ops", "struct_ops (tcp_congestion_ops)"},
};
constexpr size_t kCount = std::size(kRepresentatives);

// Who is asked first about names with these words in them; a bad guess costs one more load. The first row that fits counts.
struct Guess {
    std::string_view words;
    P type;
    A attach = kNone;
};
constexpr Guess kGuesses[] = {
    {"sysctl_", P::CGROUP_SYSCTL},
    {"lwt_push", P::LWT_XMIT},
    {"lwt_seg6", P::LWT_SEG6LOCAL},
    {"msg_", P::SK_MSG},
    {"hdr_opt", P::SOCK_OPS},
    {"sock_ops", P::SOCK_OPS},
    {"setsockopt", P::SOCK_OPS},
    {"getsockopt", P::SOCK_OPS},
    {"sock_map_update", P::SOCK_OPS},
    {"sock_hash_update", P::SOCK_OPS},
    {"get_local_storage", P::SOCK_OPS},
    {"sk_redirect_", P::SK_SKB},
    {"reuseport", P::SK_REUSEPORT},
    {"bind", P::CGROUP_SOCK_ADDR},
    {"retval", P::CGROUP_SOCK_ADDR},
    {"cgroup_id", P::CGROUP_SKB},
    {"xdp_output", P::SYSCALL},
    {"skb_output", P::SYSCALL},
    {"xdp_", P::XDP},
    {"sys_", P::SYSCALL},
    {"kallsyms", P::SYSCALL},
    {"find_by_name", P::SYSCALL},
    {"sock_from_file", P::SYSCALL},
    {"seq_", P::TRACING, A::TRACE_ITER},
    {"d_path", P::TRACING, A::TRACE_ITER},
    {"get_func_", P::TRACING, A::TRACE_FEXIT},
    {"ima_", P::LSM, A::LSM_MAC},
    {"inode_", P::LSM, A::LSM_MAC},
    {"bprm_", P::LSM, A::LSM_MAC},
    {"send_ack", P::STRUCT_OPS},
    {"perf_prog", P::PERF_EVENT},
    {"branch_records", P::PERF_EVENT},
    {"task_", P::KPROBE}, // before "sk_"
    {"skb_", P::SCHED_CLS},
    {"csum_", P::SCHED_CLS},
    {"sk_", P::SCHED_CLS},
    {"skc_", P::SCHED_CLS},
    {"tcp_", P::SCHED_CLS},
};

// The place in kRepresentatives to begin at.
size_t first_to_ask(uint32_t id) {
    const HelperInfo *helper = find_helper(id);
    if (!helper) return 0;
    for (const Guess &guess : kGuesses) {
        if (helper->name.find(guess.words) == std::string_view::npos) continue;
        for (size_t i = 0; i < kCount; ++i)
            if (kRepresentatives[i].type == guess.type && (guess.attach == kNone || kRepresentatives[i].attach == guess.attach))
                return i;
    }
    return 0;
}

struct State {
    bool prepared = false;
    TinyProgram programs[kCount];
    bool usable[kCount] = {};
    bool privileged_missing = false; ///< some were refused: a "no" isn't certain
    bool short_of = false;           ///< nor is it where some could not be tried
    bool btf_missing = false;
};
State state;
std::map<uint64_t, HelperAnswer> answers; // by type and id, for has_helper()

bool says(const std::string &log, std::string_view words) { return log.find(words) != std::string::npos; }

// The member of tcp_congestion_ops whose programs may call bpf_tcp_send_ack(): any that gets a socket. Numbered by position.
constexpr A kCongestionMember{3};

void prepare() {
    if (state.prepared) return;
    state.prepared = true;
    for (size_t i = 0; i < kCount; ++i) {
        const Representative &r = kRepresentatives[i];
        TinyProgram program{r.type, r.type == P::STRUCT_OPS ? kCongestionMember : r.attach, 0, r.sleepable, {}};
        if (!r.target.empty() && (program.btf_id = kernel_type_id(r.target)) == 0) {
            state.btf_missing = true;
            continue;
        }
        Attempt attempt = try_load(program);
        state.programs[i] = program;
        state.usable[i] = attempt.heard();
        if (attempt.heard()) continue;
        state.privileged_missing |= support_from(attempt.os) == Support::refused;
        state.short_of |= support_from(attempt.os) == Support::unasked;
    }
}

} // namespace

HelperAnswer read_helper_log(const std::string &log) {
    if (log.empty()) return HelperAnswer::silence;
    if (says(log, "invalid func")) return HelperAnswer::unknown;
    if (says(log, "unknown func") || says(log, "program of this type cannot use helper") || says(log, "not allowed in probe"))
        return HelperAnswer::not_here;
    if (says(log, "processed 0 insns")) return HelperAnswer::silence; // it refused the program before it came to the call
    return HelperAnswer::yes;
}

HelperAnswer ask_helper(TinyProgram program, uint32_t id) {
    const Insn insns[] = {{0x85, 0, 0, 0, static_cast<int32_t>(id)}, {0x95, 0, 0, 0, 0}};
    program.insns = insns;
    Attempt attempt = try_load(program);
    return attempt.fd ? HelperAnswer::yes : read_helper_log(attempt.log);
}

Probed probe_helper(uint32_t id) {
    const Remembering lock;
    sys::Because why("a probe: does this kernel have this helper function?");
    prepare();
    bool asked = false, silent = state.short_of;
    const size_t first = first_to_ask(id);
    for (size_t turn = 0; turn < kCount; ++turn) {
        const size_t i = turn == 0 ? first : turn <= first ? turn - 1 : turn;
        if (!state.usable[i]) continue;
        asked = true;
        HelperAnswer answer = ask_helper(state.programs[i], id);
        if (answer == HelperAnswer::yes) return {Support::yes, format("for {}", kRepresentatives[i].words)};
        if (answer == HelperAnswer::unknown) return {Support::no};
        silent |= answer == HelperAnswer::silence;
    }
    if (silent) return {Support::unasked, "rawbpf could not try a program that might call it"};
    if (state.privileged_missing) return {Support::unasked, "this kernel refuses the programs that could call it"};
    if (!asked || state.btf_missing) return {Support::unasked, "only programs that need the kernel's BTF could call it"};
    return {Support::no, "in the kernel, but no program type may call it"};
}

namespace {
HelperAnswer answer_of(uint32_t program_type, uint32_t id) {
    const Remembering lock;
    const uint64_t key = uint64_t{program_type} << 32 | id;
    if (auto known = answers.find(key); known != answers.end()) return known->second;
    sys::Because why("a probe: does this kernel have this helper function?");
    TinyProgram program = usual_program(program_type);
    if (program.type == P::TRACING) program.btf_id = kernel_type_id("bpf_fentry_test1");
    if (program.type == P::LSM) program.btf_id = kernel_type_id("bpf_lsm_file_open");
    const HelperAnswer answer = ask_helper(program, id);
    if (answer != HelperAnswer::silence) answers.emplace(key, answer);
    return answer;
}
} // namespace

bool has_helper(uint32_t program_type, uint32_t id) { return answer_of(program_type, id) == HelperAnswer::yes; }

Probed probe_helper_in(uint32_t program_type, uint32_t id) {
    const HelperAnswer answer = answer_of(program_type, id);
    if (answer == HelperAnswer::yes) return {Support::yes};
    if (answer != HelperAnswer::silence) return {Support::no};
    Probed program = probe_program_type(program_type);
    if (program.support == Support::yes) return {Support::unasked, "rawbpf could not try a program that might call it"};
    return program;
}

void forget_helpers() {
    const Remembering lock;
    answers.clear();
    state = {};
}

} // namespace rawbpf::inline v0
