// Kernel constants that the oldest headers we build with (Linux 5.15, Ubuntu 22.04) do not have.
//
// They are named as in the kernel and live in a namespace of their own, because in newer headers they are enumerators at
// global scope: `uapi::BPF_MAP_TYPE_ARENA` means the same thing with every header. The number after each is the Linux
// version that brought it. Source: include/uapi/linux/bpf.h and perf_event.h. Constants that are macros in the kernel can't
// be put into a namespace and are guarded with #ifndef instead.
#pragma once

#include <cstdint>

#include <linux/bpf.h>
#include <linux/perf_event.h>

#include "asm/kinds.h"

namespace rawbpf::inline v0::uapi {

// enum bpf_cmd
inline constexpr uint32_t BPF_TOKEN_CREATE = 36;           // 6.9
inline constexpr uint32_t BPF_PROG_STREAM_READ_BY_FD = 37; // 6.17
inline constexpr uint32_t BPF_PROG_ASSOC_STRUCT_OPS = 38;  // 7.0

// enum bpf_map_type, bpf_prog_type and bpf_attach_type: the numbers and versions are those of asm/kinds.h
inline constexpr uint32_t BPF_MAP_TYPE_BLOOM_FILTER = static_cast<uint32_t>(MapType::BLOOM_FILTER);
inline constexpr uint32_t BPF_MAP_TYPE_USER_RINGBUF = static_cast<uint32_t>(MapType::USER_RINGBUF);
inline constexpr uint32_t BPF_MAP_TYPE_CGRP_STORAGE = static_cast<uint32_t>(MapType::CGRP_STORAGE);
inline constexpr uint32_t BPF_MAP_TYPE_ARENA = static_cast<uint32_t>(MapType::ARENA);
inline constexpr uint32_t BPF_MAP_TYPE_INSN_ARRAY = static_cast<uint32_t>(MapType::INSN_ARRAY);
inline constexpr uint32_t BPF_PROG_TYPE_NETFILTER = static_cast<uint32_t>(ProgramType::NETFILTER);
inline constexpr uint32_t BPF_TRACE_KPROBE_MULTI = static_cast<uint32_t>(AttachType::TRACE_KPROBE_MULTI);
inline constexpr uint32_t BPF_LSM_CGROUP = static_cast<uint32_t>(AttachType::LSM_CGROUP);
inline constexpr uint32_t BPF_STRUCT_OPS = static_cast<uint32_t>(AttachType::STRUCT_OPS);
inline constexpr uint32_t BPF_NETFILTER = static_cast<uint32_t>(AttachType::NETFILTER);
inline constexpr uint32_t BPF_TCX_INGRESS = static_cast<uint32_t>(AttachType::TCX_INGRESS);
inline constexpr uint32_t BPF_TCX_EGRESS = static_cast<uint32_t>(AttachType::TCX_EGRESS);
inline constexpr uint32_t BPF_TRACE_UPROBE_MULTI = static_cast<uint32_t>(AttachType::TRACE_UPROBE_MULTI);
inline constexpr uint32_t BPF_NETKIT_PRIMARY = static_cast<uint32_t>(AttachType::NETKIT_PRIMARY);
inline constexpr uint32_t BPF_NETKIT_PEER = static_cast<uint32_t>(AttachType::NETKIT_PEER);
inline constexpr uint32_t BPF_TRACE_KPROBE_SESSION = static_cast<uint32_t>(AttachType::TRACE_KPROBE_SESSION);
inline constexpr uint32_t BPF_TRACE_UPROBE_SESSION = static_cast<uint32_t>(AttachType::TRACE_UPROBE_SESSION);
inline constexpr uint32_t BPF_TRACE_FENTRY_MULTI = static_cast<uint32_t>(AttachType::TRACE_FENTRY_MULTI);
inline constexpr uint32_t BPF_TRACE_FEXIT_MULTI = static_cast<uint32_t>(AttachType::TRACE_FEXIT_MULTI);
inline constexpr uint32_t BPF_TRACE_FSESSION_MULTI = static_cast<uint32_t>(AttachType::TRACE_FSESSION_MULTI);

// Flags of BPF_MAP_CREATE
inline constexpr uint32_t BPF_F_VTYPE_BTF_OBJ_FD = 1U << 15; // 6.9
inline constexpr uint32_t BPF_F_TOKEN_FD = 1U << 16;         // 6.9
inline constexpr uint32_t BPF_F_SEGV_ON_FAULT = 1U << 17;    // 6.9
inline constexpr uint32_t BPF_F_NO_USER_CONV = 1U << 18;     // 6.9
inline constexpr uint32_t BPF_F_RB_OVERWRITE = 1U << 19;     // 6.19
// Flag of BPF_OBJ_PIN and BPF_OBJ_GET
inline constexpr uint32_t BPF_F_PATH_FD = 1U << 14; // 6.5

// The verifier's log levels; in the kernel's include/linux/bpf_verifier.h, but part of the interface all the same.
inline constexpr uint32_t BPF_LOG_LEVEL1 = 1; // 3.18: the path that fails
inline constexpr uint32_t BPF_LOG_LEVEL2 = 2; // 4.x: every path, registers after each instruction
inline constexpr uint32_t BPF_LOG_STATS = 4;  // 5.2: sums only
inline constexpr uint32_t BPF_LOG_FIXED = 8;  // 6.4: keep the start of a log that is too long, not its end

// Flags of BPF_PROG_LOAD
#ifndef BPF_F_XDP_HAS_FRAGS
#define BPF_F_XDP_HAS_FRAGS (1U << 5) // 5.18
#endif
#ifndef BPF_F_XDP_DEV_BOUND_ONLY
#define BPF_F_XDP_DEV_BOUND_ONLY (1U << 6) // 6.3
#endif

} // namespace rawbpf::inline v0::uapi
