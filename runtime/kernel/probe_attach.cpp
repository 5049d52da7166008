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

using A = AttachType;
using P = ProgramType;
using How = AttachQuestion;

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
    switch (attach_type_row(attr.attach_type).link) {
    case LinkType::XDP:
        attr.target_fd = 1;   // lo, in every network namespace
        attr.flags = 1U << 2; // XDP_FLAGS_DRV_MODE
        break;
    case LinkType::TCX:
    case LinkType::NETKIT: attr.target_fd = 0x7fffffff; break;
    case LinkType::NETFILTER: attr.netfilter.pf = 255; break;
    case LinkType::KPROBE_MULTI:
        attr.kprobe_multi.cnt = 1;
        attr.kprobe_multi.addrs = 8;
        break;
    case LinkType::UPROBE_MULTI:
        attr.uprobe_multi.path = sys::reg("/");
        attr.uprobe_multi.offsets = sys::reg(&one_offset);
        attr.uprobe_multi.cnt = 1;
        break;
    default: attr.target_fd = ~0U;
    }
    return attr;
}

Probed try_link(AttachType type, const Attempt &program) {
    Result<Fd> link = sys::link_create(nowhere(type, program.fd.get()));
    const LinkType made = attach_type_row(static_cast<uint32_t>(type)).link;
    return from_errno(link ? 0 : link.error().os, link_type_row(static_cast<uint32_t>(made)).refusal);
}

Probed try_classic(AttachType type, const Attempt &program) {
    sys::ProgAttachAttr attr;
    attr.target_fd = ~0U;
    attr.attach_bpf_fd = static_cast<uint32_t>(program.fd.get());
    attr.attach_type = static_cast<uint32_t>(type);
    Result<void> done = sys::prog_attach(attr);
    return from_errno(done ? 0 : done.error().os, EBADF);
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
Probed try_only_right(ProgramType type) {
    Attempt wrong = try_load({.type = type, .attach = A::CGROUP_INET_EGRESS});
    if (wrong.fd) return {Support::no, "this kernel ignores the attach type here"};
    if (!wrong.heard() && support_from(wrong.os) != Support::no) return from_errno(wrong.os);
    return {Support::yes};
}

Probed try_map_entry(AttachType type) {
    Result<Fd> map = sys::map_create(tiny_map(type == A::XDP_DEVMAP ? MapType::DEVMAP : MapType::CPUMAP, 4, 8, 1));
    return from_errno(map ? 0 : map.error().os);
}

Probed ask(AttachType type) {
    const AttachTypeRow &row = attach_type_row(static_cast<uint32_t>(type));
    if (row.asked == How::map_entry) return try_map_entry(type);
    if (row.asked == How::struct_ops) return from_errno(try_struct_ops(1U << 13)); // BPF_F_LINK, 6.4
    TinyProgram program = usual_program(static_cast<uint32_t>(row.program));
    program.attach = type;
    if (!row.target.empty()) {
        program.btf_id = first_known(row.target);
        if (program.btf_id == 0) {
            std::string unread = kernel_btf_problem();
            return {Support::unasked, unread.empty() ? format("{} isn't in the kernel's BTF", row.target) : std::move(unread)};
        }
    }
    Attempt loaded = try_load(program);
    if (!loaded.fd) return {support_from(loaded.heard() ? EINVAL : loaded.os), errno_name(loaded.os)};
    switch (row.asked) {
    case How::link: return try_link(type, loaded);
    case How::classic: return try_classic(type, loaded);
    case How::hook: return try_hook(loaded);
    case How::iterator: return try_iterator(loaded);
    case How::only_right: return try_only_right(row.program);
    case How::map_entry:
    case How::struct_ops: break;
    }
    return {};
}

std::array<std::optional<Probed>, kAttachTypeCount> answers;
std::optional<bool> multi_processes;

Probed ask_attach(AttachType type) {
    const Remembering lock;
    std::optional<Probed> &answer = answers[static_cast<uint32_t>(type)];
    if (!answer || answer->support == Support::unasked) answer = ask(type);
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
    return try_link(A::SK_MSG_VERDICT, program);
}

} // namespace

Probed probe_attach_type(uint32_t type) {
    if (type >= kAttachTypeCount) return {Support::no, "not a type that rawbpf knows"};
    sys::Because why("a probe: can programs be attached in this way?");
    return ask_attach(AttachType{type});
}

Probed probe_link_type(uint32_t type) {
    sys::Because why("a probe: does this kernel have this type of link?");
    if (type == 0 || type >= kLinkTypeCount) return {Support::no, "not a type that rawbpf knows"};
    if (LinkType{type} == LinkType::RAW_TRACEPOINT) return ask_raw_tracepoint(); // its attach type needs BTF, the link doesn't
    if (LinkType{type} == LinkType::SOCKMAP) return ask_sockmap();
    return ask_attach(AttachType{first_attach_type(LinkType{type})});
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
