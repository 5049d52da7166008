// Finds a helper's row. The rows are in prototypes.def.
#include "runtime/verifier/prototypes.h"

#include "runtime/verifier/rules.h"

namespace rawbpf::inline v0::verifier {

namespace {

constexpr std::array<Argument, 5> list(Argument a, Argument b = Argument::none, Argument c = Argument::none,
                                       Argument d = Argument::none, Argument e = Argument::none) {
    return {a, b, c, d, e};
}

constexpr auto rows() {
    using enum Argument;
    return std::to_array<Prototype>({
#define RAWBPF_PROTOTYPE(name, sets, answer, trait, arguments) {#name, #sets, Answer::answer, Trait::trait, list arguments},
#include "runtime/verifier/prototypes.def"
#undef RAWBPF_PROTOTYPE
    });
}
constexpr auto kRows = rows();

struct ArgumentRow {
    Argument argument;
    ObjectWord object;
};
constexpr ArgumentRow kArguments[] = {
    {Argument::task, {"task_struct"}},
    {Argument::task_or_null, {"task_struct", true}},
    {Argument::cgroup_or_null, {"cgroup", true}},
    {Argument::inode, {"inode"}},
    {Argument::inode_or_null, {"inode", true}},
    {Argument::file, {"file"}},
    {Argument::path, {"path"}},
    {Argument::seq_file, {"seq_file"}},
    {Argument::linux_binprm, {"linux_binprm"}},
    {Argument::skb, {"sk_buff"}},
    {Argument::xdp_buff, {"xdp_buff"}},
    {Argument::tcp_sock, {"tcp_sock"}},
    {Argument::sock_common_or_null, {"sock_common", true}},
};
struct AnswerRow {
    Answer answer;
    ObjectWord object;
};
constexpr AnswerRow kAnswers[] = {
    {Answer::task, {"task_struct", false, true}},
    {Answer::pt_regs, {"pt_regs"}},
    {Answer::socket_of_file, {"socket", true}},
    {Answer::tcp_sock, {"tcp_sock", true}},
    {Answer::tcp6_sock, {"tcp6_sock", true}},
    {Answer::tcp_timewait_sock, {"tcp_timewait_sock", true}},
    {Answer::tcp_request_sock, {"tcp_request_sock", true}},
    {Answer::udp6_sock, {"udp6_sock", true}},
    {Answer::unix_sock, {"unix_sock", true}},
    {Answer::mptcp_sock, {"mptcp_sock", true}},
};

} // namespace

ObjectWord object_of_argument(Argument argument) {
    for (const ArgumentRow &row : kArguments)
        if (row.argument == argument) return row.object;
    return {};
}

ObjectWord object_of_answer(Answer answer) {
    for (const AnswerRow &row : kAnswers)
        if (row.answer == answer) return row.object;
    return {};
}

bool may_be_null(Argument argument) {
    switch (argument) {
    case Argument::context_or_null:
    case Argument::value_or_null:
    case Argument::bytes0_or_null:
    case Argument::filled0_or_null:
    case Argument::stack_or_null:
    case Argument::socket_or_null:
    case Argument::sock_object_or_null:
    case Argument::pointer_owned: return true;
    default: return object_of_argument(argument).or_null;
    }
}

const Prototype *find_prototype(std::string_view name, char set) {
    for (const Prototype &row : kRows)
        if (row.name == name && (row.sets == "all" || row.sets.find(set) != std::string_view::npos)) return &row;
    return nullptr;
}

// What each kernel answered when it was asked for each helper and each type of programs (rawbpf helper NAME, in guests): types
// that could call it in `with` and couldn't in `without`. Types that came with or after the helper aren't here.
namespace {
struct LaterAccess {
    std::string_view helper, types;
    KernelVersion without, with;
};
constexpr LaterAccess kLater[] = {
    {"get_current_pid_tgid", "NVY", {5, 10}, {6, 1}},
    {"get_current_comm", "NVY", {5, 10}, {6, 1}},
    {"get_cgroup_classid", "NVY", {5, 10}, {6, 1}},
    {"get_socket_cookie", "U", {5, 10}, {6, 1}},
    {"spin_lock", "KPRT", {5, 10}, {6, 1}},
    {"spin_unlock", "KPRT", {5, 10}, {6, 1}},
    {"strtol", "ABCDFIKLMNOPRSTUVXiosx", {5, 10}, {6, 1}},
    {"strtoul", "ABCDFIKLMNOPRSTUVXiosx", {5, 10}, {6, 1}},
    {"get_netns_cookie", "MNO", {5, 10}, {6, 1}},
    {"get_current_ancestor_cgroup_id", "KNPRTVY", {5, 10}, {6, 1}},
    {"copy_from_user", "KPRT", {5, 10}, {6, 1}},
    {"get_current_pid_tgid", "BCFILOSUXiosx", {6, 1}, {6, 12}},
    {"current_task_under_cgroup", "ADNVY", {6, 1}, {6, 12}},
    {"get_current_cgroup_id", "BCFILOSUXiosx", {6, 1}, {6, 12}},
    {"get_ns_current_pid_tgid", "ABCDFILMNOSUVXYiosx", {6, 1}, {6, 12}},
    {"get_current_ancestor_cgroup_id", "BCFILOSUXiosx", {6, 1}, {6, 12}},
    {"get_attach_cookie", "R", {6, 1}, {6, 12}},
    {"get_current_uid_gid", "BCEFILOSUXiosx", {6, 12}, {6, 18}},
    {"get_current_comm", "BCEFILMOSUXiosx", {6, 12}, {6, 18}},
    {"get_cgroup_classid", "BCEFIKLOPQRTUX", {6, 12}, {6, 18}},
    {"perf_event_read", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"current_task_under_cgroup", "BCEFILMOSUXiosx", {6, 12}, {6, 18}},
    {"perf_event_read_value", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"send_signal", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"send_signal_thread", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"get_netns_cookie", "CFS", {6, 12}, {6, 18}},
    {"get_task_stack", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"copy_from_user", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"task_storage_get", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"task_storage_delete", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"get_branch_snapshot", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"find_vma", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
    {"copy_from_user_task", "ABCDEFILMNOSUVXYiosx", {6, 12}, {6, 18}},
};
} // namespace

Access access_to(std::string_view name, char set, KernelVersion kernel) {
    for (const LaterAccess &row : kLater) {
        if (row.helper != name || row.types.find(set) == std::string_view::npos || at_least(kernel, row.with)) continue;
        return kernel == row.without || !at_least(kernel, row.without) ? Access::no : Access::unknown;
    }
    return Access::yes;
}

bool has_prototype(std::string_view name) {
    for (const Prototype &row : kRows)
        if (row.name == name) return true;
    return false;
}

} // namespace rawbpf::inline v0::verifier
