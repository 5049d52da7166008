// Clocks. The C library asks the vdso, which doesn't enter the kernel; that is why these calls don't go through invoke().
#pragma once

#include <cstdint>

namespace rawbpf::inline v0::sys {

/// Nanoseconds since boot, without time asleep: what bpf_ktime_get_ns() returns (CLOCK_MONOTONIC).
[[nodiscard]] uint64_t monotonic_ns();
/// Nanoseconds since boot, time asleep included: bpf_ktime_get_boot_ns() (CLOCK_BOOTTIME).
[[nodiscard]] uint64_t boottime_ns();
/// Nanoseconds since 1970 (CLOCK_REALTIME).
[[nodiscard]] uint64_t realtime_ns();
/// CPU time used by this process, in nanoseconds.
[[nodiscard]] uint64_t process_cpu_ns();
/// CPU time used by this thread, in nanoseconds.
[[nodiscard]] uint64_t thread_cpu_ns();
/// What has to be added to monotonic_ns() to get realtime_ns(); the better of several readings, to some 100 ns.
[[nodiscard]] int64_t realtime_offset_ns();

} // namespace rawbpf::inline v0::sys
