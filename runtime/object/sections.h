// What an ELF section's name says about the program in it: SEC("kprobe/vfs_read") is a KPROBE program for vfs_read.
//
//      "?"  kprobe.multi  /  vfs_*        "?": not loaded unless asked for by name
//           ^ kind           ^ target
//
// The names are a convention between compilers' users and loaders, set by libbpf; the kernel never sees them. This is the whole
// list that libbpf 1.8 knows, one line each in sections.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/object/kinds.h"

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

/// One name of the list.
struct SectionKind {
    std::string_view name;
    ProgramType type = ProgramType::UNSPEC;
    AttachType attach_type = AttachType::CGROUP_INET_INGRESS; ///< 0 where a type has no attach type
    SectionTarget target = SectionTarget::none;
    bool sleepable = false;
    bool xdp_frags = false;
};

/// All of them.
[[nodiscard]] std::span<const SectionKind> section_kinds();

/// The kind of a section ("?" in front is skipped), or nullptr.
[[nodiscard]] const SectionKind *find_section_kind(std::string_view section);

/// What follows the slash of a name of that kind; empty without one.
[[nodiscard]] std::string_view section_target(const SectionKind &kind, std::string_view section);

/// True where the program is verified against a kernel function, tracepoint, hook or iterator found by BTF id.
[[nodiscard]] bool needs_attach_btf(const SectionKind &kind);

/// For messages: "no section is called "kprob/x"; the nearest are kprobe/..., uprobe/...".
[[nodiscard]] std::string explain_unknown_section(std::string_view section);

} // namespace rawbpf::inline v0
