// perf_event_open(2) and the ioctls of its descriptors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/blocking_call.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::sys {

/// struct perf_event_attr with the kernel's field names, as far as Linux 6.3 knows it (136 bytes). The one-bit fields are
/// one word here, made of kPerf... below: bitfields can't be named in tables, and old headers lack the newer ones.
struct PerfEventAttr {
    uint32_t type = 0; ///< PERF_TYPE_*, or what /sys/bus/event_source/devices/PMU/type says
    uint32_t size = 0; ///< filled by perf_event_open()
    uint64_t config = 0;
    uint64_t sample_period = 0; ///< or sample_freq, with kPerfFreq
    uint64_t sample_type = 0;   ///< PERF_SAMPLE_*
    uint64_t read_format = 0;   ///< PERF_FORMAT_*
    uint64_t bits = 0;          ///< kPerf*
    uint32_t wakeup_events = 0; ///< or wakeup_watermark, in bytes, with kPerfWatermark
    uint32_t bp_type = 0;
    uint64_t config1 = 0; ///< or bp_addr, kprobe_func, uprobe_path
    uint64_t config2 = 0; ///< or bp_len, kprobe_addr, probe_offset
    uint64_t branch_sample_type = 0;
    uint64_t sample_regs_user = 0;
    uint32_t sample_stack_user = 0;
    int32_t clockid = 0;
    uint64_t sample_regs_intr = 0;
    uint32_t aux_watermark = 0;
    uint16_t sample_max_stack = 0;
    uint16_t reserved = 0;
    uint32_t aux_sample_size = 0; ///< 5.5
    uint32_t aux_action = 0;      ///< 6.13
    uint64_t sig_data = 0;        ///< 5.13
    uint64_t config3 = 0;         ///< 6.3
};
static_assert(offsetof(PerfEventAttr, wakeup_events) == 48 && offsetof(PerfEventAttr, clockid) == 92);
static_assert(offsetof(PerfEventAttr, sample_max_stack) == 108 && sizeof(PerfEventAttr) == 136);

inline constexpr uint64_t kPerfDisabled = 1ULL << 0; ///< starts switched off
inline constexpr uint64_t kPerfInherit = 1ULL << 1;  ///< children get it too
inline constexpr uint64_t kPerfPinned = 1ULL << 2;
inline constexpr uint64_t kPerfExclusive = 1ULL << 3;
inline constexpr uint64_t kPerfExcludeUser = 1ULL << 4;
inline constexpr uint64_t kPerfExcludeKernel = 1ULL << 5;
inline constexpr uint64_t kPerfExcludeHv = 1ULL << 6;
inline constexpr uint64_t kPerfExcludeIdle = 1ULL << 7;
inline constexpr uint64_t kPerfMmap = 1ULL << 8;  ///< PERF_RECORD_MMAP for executable mappings
inline constexpr uint64_t kPerfComm = 1ULL << 9;  ///< PERF_RECORD_COMM
inline constexpr uint64_t kPerfFreq = 1ULL << 10; ///< sample_period is a frequency in Hz
inline constexpr uint64_t kPerfInheritStat = 1ULL << 11;
inline constexpr uint64_t kPerfEnableOnExec = 1ULL << 12; ///< switched on by the target's next exec
inline constexpr uint64_t kPerfTask = 1ULL << 13;         ///< PERF_RECORD_FORK and _EXIT
inline constexpr uint64_t kPerfWatermark = 1ULL << 14;    ///< wakeup_events counts bytes
inline constexpr uint64_t kPerfPreciseIp = 3ULL << 15;    ///< two bits: how much skid is allowed
inline constexpr uint64_t kPerfMmapData = 1ULL << 17;
inline constexpr uint64_t kPerfSampleIdAll = 1ULL << 18; ///< every record ends with the sample_type fields
inline constexpr uint64_t kPerfExcludeHost = 1ULL << 19;
inline constexpr uint64_t kPerfExcludeGuest = 1ULL << 20;
inline constexpr uint64_t kPerfExcludeCallchainKernel = 1ULL << 21;
inline constexpr uint64_t kPerfExcludeCallchainUser = 1ULL << 22;
inline constexpr uint64_t kPerfMmap2 = 1ULL << 23; ///< PERF_RECORD_MMAP2: with inode or build-id
inline constexpr uint64_t kPerfCommExec = 1ULL << 24;
inline constexpr uint64_t kPerfUseClockid = 1ULL << 25; ///< times are in `clockid`
inline constexpr uint64_t kPerfContextSwitch = 1ULL << 26;
inline constexpr uint64_t kPerfWriteBackward = 1ULL << 27;
inline constexpr uint64_t kPerfNamespaces = 1ULL << 28;
inline constexpr uint64_t kPerfKsymbol = 1ULL << 29;       ///< 5.1
inline constexpr uint64_t kPerfBpfEvent = 1ULL << 30;      ///< 5.1
inline constexpr uint64_t kPerfAuxOutput = 1ULL << 31;     ///< 5.4
inline constexpr uint64_t kPerfCgroup = 1ULL << 32;        ///< 5.7
inline constexpr uint64_t kPerfTextPoke = 1ULL << 33;      ///< 5.9
inline constexpr uint64_t kPerfBuildId = 1ULL << 34;       ///< 5.12
inline constexpr uint64_t kPerfInheritThread = 1ULL << 35; ///< 5.13
inline constexpr uint64_t kPerfRemoveOnExec = 1ULL << 36;  ///< 5.13
inline constexpr uint64_t kPerfSigtrap = 1ULL << 37;       ///< 5.13

/// perf_event_open(2) with PERF_FLAG_FD_CLOEXEC. `pid`: a thread, 0 = this one, -1 = all; `cpu`: -1 = all. Where the kernel
/// knows a shorter attr it is asked again with that size, unless that would drop something: then unsupported, with the field.
[[nodiscard]] Result<Fd> perf_event_open(const PerfEventAttr &attr, int pid, int cpu, int group_fd = -1, uint64_t flags = 0);

/// The same by a copy of this process (see BlockingCall), which keeps the event, and of our descriptors only `keep`.
[[nodiscard]] Result<BlockingCall> perf_event_open_in_copy(const PerfEventAttr &attr, int pid, int cpu, int keep);

/// PERF_EVENT_IOC_ENABLE, _DISABLE, _RESET on one event.
[[nodiscard]] Result<void> perf_event_enable(int fd);
[[nodiscard]] Result<void> perf_event_disable(int fd);
[[nodiscard]] Result<void> perf_event_reset(int fd);
/// PERF_EVENT_IOC_PERIOD: another sample_period, or frequency.
[[nodiscard]] Result<void> perf_set_period(int fd, uint64_t period);
/// PERF_EVENT_IOC_SET_BPF: run the program at each sample; detached when the event is closed.
[[nodiscard]] Result<void> perf_set_bpf(int fd, int prog_fd);
/// PERF_EVENT_IOC_SET_OUTPUT: records go to the ring of another event on the same CPU; -1 undoes it.
[[nodiscard]] Result<void> perf_set_output(int fd, int other_fd);
/// PERF_EVENT_IOC_ID.
[[nodiscard]] Result<uint64_t> perf_id(int fd);
/// Whether this kernel turns a uprobe on a 10-byte nop into a call of uprobe(2), in place of a trap (x86_64, 7.2). From anywhere
/// else that call does nothing but tell. False for kernels that do so with 5-byte nops (6.18): they write to the program's red
/// zone.
[[nodiscard]] bool has_uprobe_call();

} // namespace rawbpf::inline v0::sys
