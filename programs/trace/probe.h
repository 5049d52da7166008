// What the user asked to trace, and what that stands for on this machine.
//
//      "uprobe:./prog:work_*"  --parse-->  ProbeSpec  --match (match.h)-->  ProbeSite, ProbeSite, ProbeSite
//
// PURE: this file only reads words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "programs/trace/go_abi.h"
#include "programs/trace/signature.h"
#include "runtime/base/result.h"
#include "runtime/usdt/arguments.h"

namespace rawbpf::inline v0::trace {

enum class ProbeKind : uint8_t {
    function,
    kprobe,
    kretprobe,
    fentry,
    fexit,
    uprobe,
    uretprobe,
    tracepoint,
    raw_tp,
    syscall,
    usdt
};

/// "kprobe", "fentry" ...; Kind::function, which has no word of its own, is "function".
[[nodiscard]] std::string_view probe_kind_name(ProbeKind kind);
/// Functions of the kernel, by whatever way.
[[nodiscard]] constexpr bool is_kernel_function(ProbeKind kind) {
    return kind == ProbeKind::function || kind == ProbeKind::kprobe || kind == ProbeKind::kretprobe ||
           kind == ProbeKind::fentry || kind == ProbeKind::fexit;
}
[[nodiscard]] constexpr bool is_user_function(ProbeKind kind) {
    return kind == ProbeKind::uprobe || kind == ProbeKind::uretprobe || kind == ProbeKind::usdt;
}
/// Whether what it is about returns: tracepoints and USDT probes are points in time.
[[nodiscard]] constexpr bool has_two_ends(ProbeKind kind) {
    return kind != ProbeKind::tracepoint && kind != ProbeKind::raw_tp && kind != ProbeKind::usdt;
}

struct ProbeSpec {
    ProbeKind kind = ProbeKind::function; ///< function: a bare glob, by the best way this kernel has
    std::string file;                     ///< uprobes: path or name of a program or library
    std::string category;                 ///< tracepoints, the provider of USDT probes; may be a glob
    std::string pattern;                  ///< a name or a glob
    uint64_t offset = 0;                  ///< kprobe, uprobe: so many bytes behind the beginning of the function, which is a name
    std::string text;                     ///< as the user wrote it
};

/// Reads "kprobe:GLOB", "kprobe:NAME+OFFSET", "uprobe:PATH:GLOB", "tracepoint:CATEGORY:GLOB", "syscall:GLOB", a bare "GLOB" ...
/// Errors: invalid_argument with what was expected and the nearest kind.
[[nodiscard]] Result<ProbeSpec> parse_probe(std::string_view text);

/// One place where a probe stands: a function, a tracepoint, a system call.
struct ProbeSite {
    ProbeKind kind = ProbeKind::kprobe;
    std::string function;                       ///< "vfs_read", "openat", "sched_switch"
    std::string file;                           ///< uprobes: the path
    std::string category;                       ///< tracepoints; of USDT probes the provider
    std::string module;                         ///< kernel functions of modules
    uint64_t address = 0;                       ///< kernel functions: address, 0 unknown; uprobes: offset in the file
    Signature signature;                        ///< of tracepoints: their fields
    std::vector<uint16_t> offsets;              ///< tracepoints: where each field is, from the record's start
    uint64_t semaphore = 0;                     ///< USDT: its offset in the file; 0: none
    std::vector<usdt::Argument> arguments = {}; ///< USDT: where each argument is; refers to `owner`
    std::shared_ptr<const void> owner = {};     ///< what keeps their text
    bool go = false;                            ///< USDT: a Go program's, whose goroutine is in a register
    std::shared_ptr<const GoCall> go_call = {}; ///< functions of Go programs: where arguments and results are
    uint64_t offset = 0;                        ///< a place inside a function: from its beginning on; it is in the name, too
    /// System calls, and the tracepoints syscalls:sys_enter_NAME and sys_exit_NAME; -1: not known, then its own tracepoint is
    /// probed.
    int32_t number = -1;

    /// "uprobe:/usr/bin/bash:readline", "tracepoint:sched:sched_switch".
    [[nodiscard]] std::string describe() const;
    /// "readline", "sched_switch"; of USDT probes "python:gc__start".
    [[nodiscard]] std::string label() const;
    /// Of what it returns: a long, where nothing is known.
    [[nodiscard]] const Type &result_type() const;
    /// A system call that is told from the others by its number, at the tracepoints that all of them share.
    [[nodiscard]] bool by_number() const { return number >= 0; }
    /// Whether that is at sys_exit; `is_result`: the end of it that is meant, where it has two.
    [[nodiscard]] bool at_sys_exit(bool is_result) const {
        return kind == ProbeKind::tracepoint ? function.starts_with("sys_exit_") : is_result;
    }
};

/// Whether one of them is a function of a program; whether one is traced by a trampoline (fentry, fexit).
///@{
[[nodiscard]] bool any_user(const std::vector<ProbeSite> &places);
[[nodiscard]] bool any_trampoline(const std::vector<ProbeSite> &places);
///@}

} // namespace rawbpf::inline v0::trace
