// SPDX-License-Identifier: MIT
// perf events that run a BPF program, at a clock's ticks or at each N-th of something: perf_event_open(2),
// PERF_EVENT_IOC_SET_BPF, ENABLE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <linux/perf_event.h>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0 {

/// What a PerfEventLink counts, of whom, and how often the program runs.
struct SamplingEvent {
    bool hardware = false;       ///< PERF_COUNT_HW_CPU_CYCLES instead of the software cpu clock; precise_ip stays 0
    uint64_t frequency = 99;     ///< Hz
    int pid = -1;                ///< a thread, or -1: all
    int cpu = -1;                ///< a CPU, or -1: all (then pid must be given)
    bool inherit = false;        ///< children and new threads too
    bool enable_on_exec = false; ///< starts counting at the target's next exec
    uint64_t period = 0;         ///< the program runs at each so many-th event, instead of `frequency` times a second
    uint32_t software = PERF_COUNT_SW_CPU_CLOCK; ///< which of the kernel's own events, where not `hardware`
};

/// One open event with a program attached; closing it detaches.
class PerfEventLink {
  public:
    /// Opens, attaches, leaves it disabled unless enable_on_exec. Errors: invalid_argument with the kernel's
    /// perf_event_max_sample_rate in the text, unsupported without a PMU, permission, not_found for a dead pid.
    [[nodiscard]] static Result<PerfEventLink> open(const SamplingEvent &event, int program_fd);
    /// Starts or stops counting (PERF_EVENT_IOC_ENABLE, _DISABLE). The program stays attached.
    ///@{
    [[nodiscard]] Result<void> enable() const;
    [[nodiscard]] Result<void> disable() const;
    ///@}
    /// The event's own count (ns for the cpu clock, cycles for hardware).
    [[nodiscard]] Result<uint64_t> count() const;
    /// PERF_EVENT_IOC_PERIOD: from now on each so many-th event. For the cpu clock these are nanoseconds, however it was opened
    /// (the kernel turns its frequency into a period); for another event with a frequency it is the new frequency.
    [[nodiscard]] Result<void> set_period(uint64_t period) const;
    /// The event's descriptor, borrowed.
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    Fd link_; ///< BPF_LINK_CREATE (5.15) where there is one, else invalid and the ioctl was used
    Fd fd_;
};

/// A tracepoint that can run a BPF program (of the tracepoint type). There is no ENABLE: it runs on every CPU as soon as it is
/// attached, and at every hit.
class TracepointLink {
  public:
    /// Opens the event. Errors: permission, and tracepoint_id()'s: `name` is CATEGORY/NAME.
    [[nodiscard]] static Result<TracepointLink> open(const std::string &name);
    /// The program (borrowed) runs from here on, as long as this lives. Errors: the kernel's.
    [[nodiscard]] Result<void> attach(int program_fd);
    /// When it returns, no CPU runs the program any more (unless somebody else has an event on this tracepoint: then a moment
    /// later).
    void detach();

  private:
    Fd link_, fd_;
};

} // namespace rawbpf::inline v0
