// What the BPF side and the C++ side of custom traces agree on.
//
//      a record in the ring:
//      | head, 72 bytes | kernel addresses | user addresses |       leaf first; only what was captured is sent
//
// Record::walked with UNWIND_COPIED: behind them UnwindRegisters and the stack's bytes, for who has the tables to walk it by.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0::custom {

/// Where a trace comes from.
enum class Origin : uint32_t {
    sampling = 0, ///< a clock's tick on a CPU
    uprobe = 1,   ///< of programs that unwind at a uprobe without a context; no program here sends it
    off_cpu = 2,  ///< a thread that came back to a CPU
    custom = 3,   ///< an external program's jump
};

inline constexpr uint32_t kMostFrames = 127; ///< each of kernel and user (kernel.perf_event_max_stack); more only by tables
inline constexpr uint32_t kStackBytes = kMostFrames * 8; ///< of that many addresses
/// custom_context_by_thread: threads with a context that their tail call hasn't taken yet.
inline constexpr uint32_t kMostThreads = 10240;
/// What custom_context_map holds on a CPU where no context waits. A context of this very value isn't taken for one.
inline constexpr uint64_t kNoContext = 0x9d3c5e71b8f2a604;

/// Bits of Record::flags.
enum RecordFlags : uint32_t {
    kPerCpu = 1,    ///< the context came by way of custom_context_map, not by thread
    kTruncated = 2, ///< a stack went on, but there was no more room (example/custom_trace.h)
};

/// The head of a record in the ring; host byte order. Addresses of 8 bytes each follow, the kernel's and then the user's.
struct Record {
    uint64_t t_ns;        ///< CLOCK_MONOTONIC
    uint64_t context;     ///< Origin::custom: what the external program stored; off_cpu: nanoseconds; else 0
    uint64_t caller;      ///< in user code: what the stack pointer (arm64: the link register) pointed at; 0: unknown
    uint32_t pid,         ///< the process, as our pid namespace numbers it
        tid;              ///< the thread, likewise
    uint32_t cpu,         ///< on which it was captured
        flags;            ///< RecordFlags
    int32_t kernel_bytes, ///< of the kernel's addresses that follow; negative: -errno
        user_bytes;       ///< of the user's addresses that follow; negative: -errno
    Origin origin;        ///< which of the programs sent it
    /// The user stack: 0: by frame pointers; else UNWIND_ENDED_... of runtime/unwind/layout.h, and UNWIND_TABLES.
    uint32_t walked;
    char comm[16]; ///< the thread's name, padded with NULs
};
static_assert(sizeof(Record) == 72);

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
};

} // namespace rawbpf::inline v0::custom
