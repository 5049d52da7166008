// Shared by the parts of attach_program(); private to this folder.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/format.h"
#include "runtime/kernel/probes.h"
#include "runtime/link/attach.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0 {

struct Attaching {
    const ObjectSpec &spec;
    LoadedObject &object;
    const Program &program;
    const AttachOptions &options;
    const SectionKind &kind;
    std::string target; ///< the options', else the section's

    [[nodiscard]] int program_fd() const { return program.fd.get(); }
    /// What the section's kind and target are called: "kprobe vfs_read".
    [[nodiscard]] std::string what() const {
        return target.empty() ? std::string(kind.name) : format("{} {}", kind.name, target);
    }
};

/// BPF_LINK_CREATE with the program and the attach type of the section filled in.
[[nodiscard]] sys::LinkCreateAttr link_attr(const Attaching &a);
/// Why a cookie can't be had, and what to do instead.
[[nodiscard]] Unexpected no_cookie(const Attaching &a, std::string_view since);

/// PURE. Why no trampoline can be put on `function` (of kind func, in `types`), by what its prototype says: "13 arguments, 12 at
/// most", "a variable number of arguments"; empty: nothing speaks against it. Errors: broken BTF.
[[nodiscard]] Result<std::string> why_no_trampoline(const btf::Btf &types, const btf::Type &function);

/// By the one of the functions below that is for the section's kind. Errors: unsupported where the program was linked without it.
[[nodiscard]] Result<Link> attach_by_kind(const Attaching &a);
[[nodiscard]] Result<Link> attach_tracepoint(const Attaching &a);
[[nodiscard]] Result<Link> attach_raw_tracepoint(const Attaching &a);
[[nodiscard]] Result<Link> attach_trampoline(const Attaching &a);
[[nodiscard]] Result<Link> attach_trampoline_multi(const Attaching &a);
[[nodiscard]] Result<Link> attach_usdt(const Attaching &a);
[[nodiscard]] Result<Link> attach_iterator(const Attaching &a);
[[nodiscard]] Result<Link> attach_perf_event(const Attaching &a);
[[nodiscard]] Result<Link> attach_kprobe(const Attaching &a); ///< and kretprobe
[[nodiscard]] Result<Link> attach_ksyscall(const Attaching &a);
[[nodiscard]] Result<Link> attach_kprobe_multi(const Attaching &a); ///< and kretprobe.multi, kprobe.session
[[nodiscard]] Result<Link> attach_uprobe(const Attaching &a);       ///< and uretprobe
[[nodiscard]] Result<Link> attach_uprobe_multi(const Attaching &a); ///< and uretprobe.multi, uprobe.session
[[nodiscard]] Result<Link> attach_interface(const Attaching &a);    ///< xdp, tcx, tc, netkit
[[nodiscard]] Result<Link> attach_cgroup(const Attaching &a);
[[nodiscard]] Result<Link> attach_network_namespace(const Attaching &a);
[[nodiscard]] Result<Link> attach_socket_map(const Attaching &a);
[[nodiscard]] Result<Link> attach_netfilter(const Attaching &a);
[[nodiscard]] Result<Link> attach_lirc(const Attaching &a);
[[nodiscard]] Result<Link> attach_socket(const Attaching &a); ///< and sk_reuseport

} // namespace rawbpf::inline v0
