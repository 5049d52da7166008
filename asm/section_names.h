// SPDX-License-Identifier: MIT
// What an ELF section's name says about the program in it: SEC("kprobe/vfs_read") is a KPROBE program for vfs_read.
//
//      "?"  kprobe.multi  /  vfs_*        "?": not loaded unless asked for by name
//           ^ kind           ^ target
//
// The names are a convention between programs and loaders, set by libbpf; the kernel never sees them. section_names.cpp has all
// that libbpf 1.8 knows, one line each: the loader, the links, the assembler and the builder read it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "asm/attach_types.h"
#include "asm/program_types.h"

namespace rawbpf::inline v0 {

/// What follows the slash.
enum class SectionTarget : uint8_t {
    none,            ///< nothing may follow: the name is exact
    kernel_function, ///< "vfs_read", "vfs_read+0x10", or a pattern for .multi
    user_function,   ///< "/usr/lib/libc.so.6:malloc", "+0x10" after it, or a pattern for .multi
    syscall,         ///< "openat", without the architecture's prefix
    usdt,            ///< "/usr/bin/python3:python:function__entry"
    tracepoint,      ///< "sched/sched_switch"
    raw_tracepoint,  ///< "sched_switch"
    btf_function,    ///< a kernel function by its BTF: "vfs_read"
    btf_tracepoint,  ///< "sched_switch", by its BTF
    lsm_hook,        ///< "file_open"
    iterator,        ///< "task"
    program,         ///< freplace: a function of another program
    struct_ops,      ///< free text: the member of a struct_ops map names the program
};

/// How a program of that section is made to run.
enum class Attachment : uint8_t {
    // The section's name says where: attached without being told more.
    kprobe,
    kretprobe,
    kprobe_multi,
    kretprobe_multi,
    kprobe_session,
    ksyscall, ///< a kprobe on the architecture's name for the system call
    kretsyscall,
    uprobe,
    uretprobe,
    uprobe_multi,
    uretprobe_multi,
    uprobe_session,
    usdt,
    tracepoint,
    raw_tracepoint,
    trampoline,       ///< tp_btf, fentry, fexit, fmod_ret, fsession, lsm: where was decided when it was loaded
    trampoline_multi, ///< fentry.multi ...: a pattern of functions, by their BTF ids
    replace,          ///< freplace: where was decided when it was loaded
    iterator,         ///< runs when its link is read
    struct_ops,       ///< by way of the map that names it
    // Something has to be named.
    perf_event,        ///< a perf event
    xdp,               ///< a network interface
    tcx,               ///< the same, in or out
    tc,                ///< the same, by a clsact filter; which way must be said
    netkit,            ///< a netkit interface
    cgroup,            ///< a directory of cgroup v2
    network_namespace, ///< a network namespace
    socket_map,        ///< a SOCKMAP or SOCKHASH
    netfilter,         ///< a protocol family and a hook
    lirc,              ///< an infrared device
    socket,            ///< a socket, by setsockopt
    reuseport,         ///< the same, for its group of SO_REUSEPORT
    // Not attached by bpf(2) at all.
    run,       ///< syscall: run once, by BPF_PROG_TEST_RUN
    route,     ///< lwt_*: part of a route that iproute2 sets
    action,    ///< of a tc filter that tc(8) sets
    map_entry, ///< runs from an entry of a DEVMAP or CPUMAP
};

/// One name of the list.
struct SectionKind {
    std::string_view name;                                    ///< the part before the target: "kprobe", "cgroup/skb"
    ProgramType type = ProgramType::UNSPEC;                   ///< what its programs are loaded as
    AttachType attach_type = AttachType::CGROUP_INET_INGRESS; ///< 0 where a type has no attach type
    SectionTarget target = SectionTarget::none;               ///< what follows the slash
    Attachment attachment = Attachment::run;                  ///< how its programs are made to run
    bool sleepable = false; ///< loaded with BPF_F_SLEEPABLE: "syscall", and names that end in ".s"
    bool xdp_frags = false; ///< loaded with BPF_F_XDP_HAS_FRAGS: "xdp.frags", "xdp.frags/devmap" ...
};

/// All of them.
[[nodiscard]] std::span<const SectionKind> section_kinds();

/// The kind of a section ("?" in front is skipped), or nullptr.
[[nodiscard]] const SectionKind *find_section_kind(std::string_view section);

} // namespace rawbpf::inline v0
