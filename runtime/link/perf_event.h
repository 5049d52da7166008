// perf events as clocks that run a BPF program: perf_event_open(2), PERF_EVENT_IOC_SET_BPF, ENABLE.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0 {

struct SamplingEvent {
    bool hardware = false;       ///< PERF_COUNT_HW_CPU_CYCLES instead of the software cpu clock; precise_ip stays 0
    uint64_t frequency = 99;     ///< Hz
    int pid = -1;                ///< a thread, or -1: all
    int cpu = -1;                ///< a CPU, or -1: all (then pid must be given)
    bool inherit = false;        ///< children and new threads too
    bool enable_on_exec = false; ///< starts counting at the target's next exec
};

/// One open event with a program attached; closing it detaches.
class PerfEventLink {
  public:
    /// Opens, attaches, leaves it disabled unless enable_on_exec. Errors: invalid_argument with the kernel's
    /// perf_event_max_sample_rate in the text, unsupported without a PMU, permission, not_found for a dead pid.
    [[nodiscard]] static Result<PerfEventLink> open(const SamplingEvent &event, int program_fd);
    [[nodiscard]] Result<void> enable() const;
    [[nodiscard]] Result<void> disable() const;
    /// The event's own count (ns for the cpu clock, cycles for hardware).
    [[nodiscard]] Result<uint64_t> count() const;
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    Fd link_; ///< BPF_LINK_CREATE (5.15) where there is one, else invalid and the ioctl was used
    Fd fd_;
};

} // namespace rawbpf::inline v0
