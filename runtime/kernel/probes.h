// SPDX-License-Identifier: MIT
// What the running kernel can do, found out by trying.
//
// Version numbers lie (distributions backport, vendors cut out), so each probe makes the smallest system call that needs the
// feature. Answers are kept for the life of the process. Nothing is probed before somebody asks: most programs never need to.
//
// A probe attaches nothing that could be noticed: where a type can be told from an error (no such cgroup, no such device) it is;
// only fentry, LSM and iterator programs are attached for the length of a system call, to functions that nobody calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// What a probe found out.
enum class Support : uint8_t {
    yes,     ///< this kernel has it
    no,      ///< this kernel doesn't have it
    refused, ///< the kernel wouldn't say: for want of privileges, or a policy is in the way (EPERM, EACCES)
    unasked, ///< could not be asked: something needed for it is missing (the kernel's BTF), or there was a shortage (ENOMEM)
};
/// An answer, and how it was found.
struct Probed {
    Support support = Support::no; ///< the answer
    std::string detail = {};       ///< how it was found out, where that isn't plain: "asked in a kprobe program"
};

/// What probe_feature() can be asked about, with the Linux version that brought it.
enum class Feature : uint8_t {
    object_name,       ///< map_name and prog_name, 4.15
    btf,               ///< BPF_BTF_LOAD, 4.18
    global_data,       ///< .rodata, .data, .bss: direct map values, 5.2
    map_freeze,        ///< BPF_MAP_FREEZE, 5.2
    batch,             ///< BPF_MAP_LOOKUP_BATCH ..., 5.6
    ring_buffer,       ///< BPF_MAP_TYPE_RINGBUF, 5.8
    run_stats,         ///< BPF_ENABLE_STATS, 5.8
    perf_link,         ///< BPF_LINK_CREATE for perf events, with bpf_cookie, 5.15
    probe_read_kernel, ///< bpf_probe_read_kernel() and _user(), 5.5
    task_pt_regs,      ///< bpf_task_pt_regs(), 5.15
    cookie,            ///< bpf_get_attach_cookie(), 5.15
    bpf_loop,          ///< bpf_loop(), 5.17
    kernel_btf,        ///< /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF), 5.4
    uprobe_call,       ///< uprobes on 10-byte nops become calls (x86_64), 7.2
    /// Programs at probes and events with 64 bytes of stack or more have one stack a CPU, not one on the thread's own (x86_64,
    /// 6.13). At uprobes that is dangerous: they can be preempted, and the next thread's program uses the same.
    private_stack,
};
inline constexpr int kFeatureCount = 15; ///< enumerators of Feature

/// Whether this kernel, with these privileges, has it. The first question costs a few system calls.
[[nodiscard]] Probed probe_feature(Feature feature);
/// The same: whether the answer is Support::yes.
[[nodiscard]] bool has_feature(Feature feature);
/// What is known without asking: nullopt before the first question.
[[nodiscard]] std::optional<bool> known_feature(Feature feature);
/// Somebody found it out on the way, which saves a probe.
void note_feature(Feature feature, bool there);
/// "ring buffers, 5.8": the name for messages and the Linux version that brought it.
[[nodiscard]] std::string_view feature_name(Feature feature);
/// An error "needs ring buffers, 5.8" when the feature is missing; it says so where that could not be found out.
[[nodiscard]] Result<void> need(Feature feature);

/// Whether a map of this type can be made (BPF_MAP_TYPE_*); has_...: whether the answer is Support::yes.
///@{
[[nodiscard]] Probed probe_map_type(uint32_t type);
[[nodiscard]] bool has_map_type(uint32_t type);
///@}
/// Whether the verifier takes programs of this type (BPF_PROG_TYPE_*). That says nothing yet about where they attach.
///@{
[[nodiscard]] Probed probe_program_type(uint32_t type);
[[nodiscard]] bool has_program_type(uint32_t type);
///@}
/// Whether a program can be attached in this way (enum bpf_attach_type).
[[nodiscard]] Probed probe_attach_type(uint32_t type);
/// Whether uprobe.multi (6.6) limited to a process means all of its threads: until 6.10 it means the one thread of that number.
[[nodiscard]] bool uprobe_multi_takes_processes();
/// Whether this kernel makes links of this type (BPF_LINK_TYPE_*).
[[nodiscard]] Probed probe_link_type(uint32_t type);
/// Whether some type of program may call helper number `id`; `detail` names the first type found.
[[nodiscard]] Probed probe_helper(uint32_t id);
/// True when a program of this type may call helper number `id`.
[[nodiscard]] bool has_helper(uint32_t program_type, uint32_t id);
/// "ring buffers, 5.8" for BPF_MAP_TYPE_RINGBUF.
[[nodiscard]] std::string map_type_needs(uint32_t type);

/// Forgets all answers; for tests that change the backend.
void forget_features();

} // namespace rawbpf::inline v0
