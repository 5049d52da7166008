// SPDX-License-Identifier: MIT
// What the BPF side and the C++ side of custom traces agree on.
//
//      a record in the ring (programs/capture/record_head.h):
//      | RecordHead, 48 bytes | context, caller, flags, origin | kernel addresses | user addresses |
//
// RecordHead::ending with UNWIND_COPIED: behind them UnwindRegisters and the stack's bytes, for who has the tables to walk it by.
#pragma once

#include <cstdint>

#include "programs/capture/record_head.h"

namespace rawbpf::inline v0::custom {

/// Where a trace comes from.
enum class Origin : uint32_t {
    sampling = 0, ///< a clock's tick on a CPU
    uprobe = 1,   ///< of programs that unwind at a uprobe without a context; no program here sends it
    off_cpu = 2,  ///< a thread that came back to a CPU
    custom = 3,   ///< an external program's jump
};

/// custom_context_by_thread: threads with a context that their tail call hasn't taken yet.
inline constexpr uint32_t kMostThreads = 10240;
/// What custom_context_map holds on a CPU where no context waits. A context of this very value isn't taken for one.
inline constexpr uint64_t kNoContext = 0x9d3c5e71b8f2a604;

/// Bits of Record::flags.
enum RecordFlags : uint32_t {
    kPerCpu = 1,    ///< the context came by way of custom_context_map, not by thread
    kTruncated = 2, ///< a stack went on, but there was no more room (example/custom_trace.h)
};

/// What a record has behind its RecordHead.
struct CustomFields {
    uint64_t context; ///< Origin::custom: what the external program stored; off_cpu: nanoseconds; else 0
    uint64_t caller;  ///< in user code: what the stack pointer (arm64: the link register) pointed at; 0: unknown
    uint32_t flags;   ///< RecordFlags
    Origin origin;    ///< which of the programs sent it
};

/// The fixed part of a record in the ring; host byte order. Addresses of 8 bytes each follow, the kernel's and then the user's.
struct Record : RecordHead, CustomFields {};
static_assert(sizeof(Record) == sizeof(RecordHead) + sizeof(CustomFields));

/// What the programs count, over all CPUs since they were loaded.
struct Counts {
    uint64_t external;         ///< runs of rawbpf's own external program
    uint64_t lost_tail_call;   ///< of these: bpf_tail_call came back
    uint64_t lost_context_map; ///< of these: custom_context_by_thread took no context
    uint64_t entered;          ///< runs of the generic programs, whoever jumped to them
    uint64_t lost_context;     ///< of these: there was no context of this thread
    uint64_t sampled;          ///< runs of the sampling program
    uint64_t filtered;         ///< samples of idle CPUs; tasks outside of our pid namespace
    uint64_t lost_scratch;     ///< so many threads are interrupted in this program on this CPU that there is no room for one more
    uint64_t lost_ring_full;   ///< records for which the ring had no room
    uint64_t off_cpu;          ///< threads that came back to a CPU, or for which there was no room when they left
    uint64_t lost_off_cpu_map; ///< of these: so many threads are off their CPUs that there is no room for one more
    uint64_t cleared;          ///< contexts in custom_context_map that another thread could have found, taken away
    uint64_t end_unseen; ///< of off_cpu: seen to leave, and then to leave again: they came back after the switch before that
    uint64_t switch_ns;  ///< no count: when the last switch of a CPU was; of all CPUs together 0
};

} // namespace rawbpf::inline v0::custom
