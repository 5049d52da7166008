// Attach and link types.
//
// Loading alone proves little here: for many program types the kernel doesn't check the expected attach type before attaching.
// So each type is tried by attaching to something that can't exist; a kernel that knows the type fails with another error than
// one that doesn't (kernel/bpf/syscall.c, link_create() and bpf_prog_attach()):
//
//      a cgroup, map, network namespace or event that is descriptor -1     EBADF, else EINVAL
//      device number 2^31-1 (tcx, netkit)                                  ENODEV, else EINVAL
//      XDP in driver mode on the loopback device, which has no such mode   EOPNOTSUPP, else EINVAL
//      netfilter, protocol family 255                                      EAFNOSUPPORT, else EINVAL
//      kprobe.multi, addresses that can't be read                          EFAULT, else EINVAL or EOPNOTSUPP
//      uprobe.multi, a file that is a directory                            EBADF, else EINVAL or EOPNOTSUPP
//
// Only the trampolines (fentry, LSM ...) have to be really attached, because an architecture may know the types and not
// support them (arm64 before 6.4: ENOTSUPP). The probes use functions that the kernel keeps for its own tests, and hooks that
// are almost never called. The program returns 0, and is removed when the call returns.
#include "runtime/kernel/probe_load.h"
#include "runtime/kernel/probe_maps.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <linux/bpf.h>

#include "runtime/base/format.h"
#include "runtime/base/remembering.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {
namespace {

enum class How : uint8_t {
    link,       ///< BPF_LINK_CREATE with a target that isn't there
    classic,    ///< BPF_PROG_ATTACH with a target that isn't there
    hook,       ///< a function or typedef of the kernel's, attached for a moment
    iterator,   ///< the same by BPF_LINK_CREATE
    only_right, ///< loading takes this expected attach type and no other
    device_map, ///< a program in a map: its value must have room for one
    struct_ops, ///< a flag of the map
};

struct Row {
    AttachType type;
    ProgramType program;
    How how;
    int proof = 0;                ///< the errno that only a kernel knowing the type gives
    std::string_view target = {}; ///< in the kernel's BTF
};
using A = AttachType;
using P = ProgramType;
constexpr Row kRows[] = {
    {A::CGROUP_INET_INGRESS, P::CGROUP_SKB, How::link, EBADF},
    {A::CGROUP_INET_EGRESS, P::CGROUP_SKB, How::link, EBADF},
    {A::CGROUP_INET_SOCK_CREATE, P::CGROUP_SOCK, How::link, EBADF},
    {A::CGROUP_SOCK_OPS, P::SOCK_OPS, How::link, EBADF},
    {A::SK_SKB_STREAM_PARSER, P::SK_SKB, How::classic, EBADF},
    {A::SK_SKB_STREAM_VERDICT, P::SK_SKB, How::classic, EBADF},
    {A::CGROUP_DEVICE, P::CGROUP_DEVICE, How::link, EBADF},
    {A::SK_MSG_VERDICT, P::SK_MSG, How::classic, EBADF},
    {A::CGROUP_INET4_BIND, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET6_BIND, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET4_CONNECT, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET6_CONNECT, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET4_POST_BIND, P::CGROUP_SOCK, How::link, EBADF},
    {A::CGROUP_INET6_POST_BIND, P::CGROUP_SOCK, How::link, EBADF},
    {A::CGROUP_UDP4_SENDMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UDP6_SENDMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::LIRC_MODE2, P::LIRC_MODE2, How::classic, EBADF},
    {A::FLOW_DISSECTOR, P::FLOW_DISSECTOR, How::link, EBADF},
    {A::CGROUP_SYSCTL, P::CGROUP_SYSCTL, How::link, EBADF},
    {A::CGROUP_UDP4_RECVMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UDP6_RECVMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_GETSOCKOPT, P::CGROUP_SOCKOPT, How::link, EBADF},
    {A::CGROUP_SETSOCKOPT, P::CGROUP_SOCKOPT, How::link, EBADF},
    {A::TRACE_RAW_TP, P::TRACING, How::hook, 0, "btf_trace_sched_process_hang btf_trace_sched_process_exec"},
    {A::TRACE_FENTRY, P::TRACING, How::hook, 0, "bpf_fentry_test1"},
    {A::TRACE_FEXIT, P::TRACING, How::hook, 0, "bpf_fentry_test1"},
    {A::MODIFY_RETURN, P::TRACING, How::hook, 0, "bpf_modify_return_test"},
    {A::LSM_MAC, P::LSM, How::hook, 0, "bpf_lsm_path_chroot bpf_lsm_sb_umount"},
    {A::TRACE_ITER, P::TRACING, How::iterator, 0, "bpf_iter_task bpf_iter_bpf_map"},
    {A::CGROUP_INET4_GETPEERNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET6_GETPEERNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET4_GETSOCKNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_INET6_GETSOCKNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::XDP_DEVMAP, P::XDP, How::device_map},
    {A::CGROUP_INET_SOCK_RELEASE, P::CGROUP_SOCK, How::link, EBADF},
    {A::XDP_CPUMAP, P::XDP, How::device_map},
    {A::SK_LOOKUP, P::SK_LOOKUP, How::link, EBADF},
    {A::XDP, P::XDP, How::link, EOPNOTSUPP},
    {A::SK_SKB_VERDICT, P::SK_SKB, How::classic, EBADF},
    {A::SK_REUSEPORT_SELECT, P::SK_REUSEPORT, How::only_right},
    {A::SK_REUSEPORT_SELECT_OR_MIGRATE, P::SK_REUSEPORT, How::only_right},
    {A::PERF_EVENT, P::PERF_EVENT, How::link, EBADF},
    {A::TRACE_KPROBE_MULTI, P::KPROBE, How::link, EFAULT},
    {A::LSM_CGROUP, P::LSM, How::link, EBADF, "bpf_lsm_socket_bind"},
    {A::STRUCT_OPS, P::STRUCT_OPS, How::struct_ops},
    {A::NETFILTER, P::NETFILTER, How::link, EAFNOSUPPORT},
    {A::TCX_INGRESS, P::SCHED_CLS, How::link, ENODEV},
    {A::TCX_EGRESS, P::SCHED_CLS, How::link, ENODEV},
    {A::TRACE_UPROBE_MULTI, P::KPROBE, How::link, EBADF},
    {A::CGROUP_UNIX_CONNECT, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UNIX_SENDMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UNIX_RECVMSG, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UNIX_GETPEERNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::CGROUP_UNIX_GETSOCKNAME, P::CGROUP_SOCK_ADDR, How::link, EBADF},
    {A::NETKIT_PRIMARY, P::SCHED_CLS, How::link, ENODEV},
    {A::NETKIT_PEER, P::SCHED_CLS, How::link, ENODEV},
    {A::TRACE_KPROBE_SESSION, P::KPROBE, How::link, EFAULT},
    {A::TRACE_UPROBE_SESSION, P::KPROBE, How::link, EBADF},
    {A::TRACE_FSESSION, P::TRACING, How::hook, 0, "bpf_fentry_test1"},
    {A::TRACE_FENTRY_MULTI, P::TRACING, How::link, EFAULT},
    {A::TRACE_FEXIT_MULTI, P::TRACING, How::link, EFAULT},
    {A::TRACE_FSESSION_MULTI, P::TRACING, How::link, EFAULT},
};
static_assert(std::size(kRows) == kAttachTypeCount);
constexpr bool in_order() {
    for (uint32_t i = 0; i < kAttachTypeCount; ++i)
        if (static_cast<uint32_t>(kRows[i].type) != i) return false;
    return true;
}
static_assert(in_order());

Probed from_errno(int os) {
    if (os == 0) return {Support::yes};
    return {support_from(os), errno_name(os)};
}
Probed from_errno(int os, int proof) { return from_errno(os == proof ? 0 : os); }

// The first of these names that the kernel's BTF knows; 0: none.
uint32_t first_known(std::string_view names) {
    while (!names.empty()) {
        size_t end = std::min(names.find(' '), names.size());
        if (uint32_t id = kernel_type_id(names.substr(0, end))) return id;
        names.remove_prefix(std::min(end + 1, names.size()));
    }
    return 0;
}

// What a link of that type points at, chosen so that nothing comes of it.
sys::LinkCreateAttr nowhere(AttachType type, int program) {
    static constexpr uint64_t one_offset = 0;
    sys::LinkCreateAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program);
    attr.attach_type = static_cast<uint32_t>(type);
    switch (type) {
    case A::XDP:
        attr.target_fd = 1;   // lo, in every network namespace
        attr.flags = 1U << 2; // XDP_FLAGS_DRV_MODE
        break;
    case A::TCX_INGRESS:
    case A::TCX_EGRESS:
    case A::NETKIT_PRIMARY:
    case A::NETKIT_PEER: attr.target_fd = 0x7fffffff; break;
    case A::NETFILTER: attr.netfilter.pf = 255; break;
    case A::TRACE_KPROBE_MULTI:
    case A::TRACE_KPROBE_SESSION:
        attr.kprobe_multi.cnt = 1;
        attr.kprobe_multi.addrs = 8;
        break;
    case A::TRACE_UPROBE_MULTI:
    case A::TRACE_UPROBE_SESSION:
        attr.uprobe_multi.path = sys::reg("/");
        attr.uprobe_multi.offsets = sys::reg(&one_offset);
        attr.uprobe_multi.cnt = 1;
        break;
    default: attr.target_fd = ~0U;
    }
    return attr;
}

Probed try_link(const Row &row, const Attempt &program) {
    Result<Fd> link = sys::link_create(nowhere(row.type, program.fd.get()));
    return from_errno(link ? 0 : link.error().os, row.proof);
}

Probed try_classic(const Row &row, const Attempt &program) {
    sys::ProgAttachAttr attr;
    attr.target_fd = ~0U;
    attr.attach_bpf_fd = static_cast<uint32_t>(program.fd.get());
    attr.attach_type = static_cast<uint32_t>(row.type);
    Result<void> done = sys::prog_attach(attr);
    return from_errno(done ? 0 : done.error().os, row.proof);
}

Probed try_hook(const Attempt &program) {
    Result<Fd> link = sys::raw_tracepoint_open("", program.fd.get());
    if (link) return {Support::yes};
    Probed answer = from_errno(link.error().os);
    if (link.error().os == 524) answer.detail = "this architecture has no trampolines for it (ENOTSUPP)";
    return answer;
}

Probed try_iterator(const Attempt &program) {
    sys::LinkCreateAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program.fd.get());
    attr.attach_type = static_cast<uint32_t>(A::TRACE_ITER);
    Result<Fd> link = sys::link_create(attr);
    return from_errno(link ? 0 : link.error().os);
}

// Kernels before 5.14 don't look at SK_REUSEPORT's expected attach type at all: then the wrong one is accepted too.
Probed try_only_right(const Row &row) {
    Attempt wrong = try_load({.type = row.program, .attach = A::CGROUP_INET_EGRESS});
    if (wrong.fd) return {Support::no, "this kernel takes any attach type here, and doesn't look at it"};
    if (!wrong.heard() && support_from(wrong.os) != Support::no) return from_errno(wrong.os);
    return {Support::yes};
}

Probed try_device_map(const Row &row) {
    Result<Fd> map = sys::map_create(tiny_map(row.type == A::XDP_DEVMAP ? MapType::DEVMAP : MapType::CPUMAP, 4, 8, 1));
    return from_errno(map ? 0 : map.error().os);
}

Probed ask(const Row &row) {
    if (row.how == How::device_map) return try_device_map(row);
    if (row.how == How::struct_ops) return from_errno(try_struct_ops(1U << 13)); // BPF_F_LINK, 6.4
    TinyProgram program = usual_program(static_cast<uint32_t>(row.program));
    program.attach = row.type;
    if (!row.target.empty()) {
        program.btf_id = first_known(row.target);
        if (program.btf_id == 0) {
            std::string unread = kernel_btf_problem();
            return {Support::unasked, unread.empty() ? format("{} isn't in the kernel's BTF", row.target) : std::move(unread)};
        }
    }
    Attempt loaded = try_load(program);
    if (!loaded.fd) return {support_from(loaded.heard() ? EINVAL : loaded.os), errno_name(loaded.os)};
    switch (row.how) {
    case How::link: return try_link(row, loaded);
    case How::classic: return try_classic(row, loaded);
    case How::hook: return try_hook(loaded);
    case How::iterator: return try_iterator(loaded);
    case How::only_right: return try_only_right(row);
    case How::device_map:
    case How::struct_ops: break;
    }
    return {};
}

std::array<std::optional<Probed>, kAttachTypeCount> answers;
std::optional<bool> multi_processes;

Probed ask_attach(AttachType type) {
    const Remembering lock;
    std::optional<Probed> &answer = answers[static_cast<uint32_t>(type)];
    if (!answer || answer->support == Support::unasked) answer = ask(kRows[static_cast<uint32_t>(type)]);
    return *answer;
}

// A link to a tracepoint that doesn't exist.
Probed ask_raw_tracepoint() {
    Attempt program = try_load({.type = P::RAW_TRACEPOINT});
    if (!program.fd) return from_errno(program.os);
    Result<Fd> link = sys::raw_tracepoint_open("rawbpf_nowhere", program.fd.get());
    return from_errno(link ? 0 : link.error().os, ENOENT);
}

// Until 6.10 a socket map's programs are attached without a link.
Probed ask_sockmap() {
    Attempt program = try_load({.type = P::SK_MSG, .attach = A::SK_MSG_VERDICT});
    if (!program.fd) return from_errno(program.os);
    return try_link({A::SK_MSG_VERDICT, P::SK_MSG, How::link, EBADF}, program);
}

} // namespace

Probed probe_attach_type(uint32_t type) {
    if (type >= kAttachTypeCount) return {Support::no, "not a type that rawbpf knows"};
    sys::Because why("a probe: can programs be attached in this way?");
    return ask_attach(AttachType{type});
}

Probed probe_link_type(uint32_t type) {
    sys::Because why("a probe: does this kernel have this type of link?");
    switch (LinkType{type}) {
    case LinkType::RAW_TRACEPOINT: return ask_raw_tracepoint();
    case LinkType::TRACING: return ask_attach(A::TRACE_FENTRY);
    case LinkType::CGROUP: return ask_attach(A::CGROUP_INET_INGRESS);
    case LinkType::ITER: return ask_attach(A::TRACE_ITER);
    case LinkType::NETNS: return ask_attach(A::FLOW_DISSECTOR);
    case LinkType::XDP: return ask_attach(A::XDP);
    case LinkType::PERF_EVENT: return ask_attach(A::PERF_EVENT);
    case LinkType::KPROBE_MULTI: return ask_attach(A::TRACE_KPROBE_MULTI);
    case LinkType::STRUCT_OPS: return ask_attach(A::STRUCT_OPS);
    case LinkType::NETFILTER: return ask_attach(A::NETFILTER);
    case LinkType::TCX: return ask_attach(A::TCX_INGRESS);
    case LinkType::UPROBE_MULTI: return ask_attach(A::TRACE_UPROBE_MULTI);
    case LinkType::NETKIT: return ask_attach(A::NETKIT_PRIMARY);
    case LinkType::SOCKMAP: return ask_sockmap();
    case LinkType::TRACING_MULTI: return ask_attach(A::TRACE_FENTRY_MULTI);
    case LinkType::UNSPEC: break;
    }
    return {Support::no, "not a type that rawbpf knows"};
}

// Since 6.10 a process that can't be is refused before anything else is looked at.
bool uprobe_multi_takes_processes() {
    const Remembering lock;
    static constexpr uint32_t kNoProcess = ~0U;
    if (!multi_processes) {
        Attempt program = try_load({.type = P::KPROBE, .attach = A::TRACE_UPROBE_MULTI});
        if (!program.fd) return false;
        sys::LinkCreateAttr attr = nowhere(A::TRACE_UPROBE_MULTI, program.fd.get());
        attr.uprobe_multi.pid = kNoProcess;
        Result<Fd> link = sys::link_create(attr);
        multi_processes = !link && link.error().os == EINVAL;
    }
    return *multi_processes;
}

void forget_attach_types() {
    const Remembering lock;
    answers.fill({});
    multi_processes.reset();
}

} // namespace rawbpf::inline v0
