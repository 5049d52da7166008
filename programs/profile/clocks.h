// What makes the program run: a clock (or another event) on each CPU, or a tracepoint. And what a sample of it stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "programs/profile/cpu_budget.h"
#include "programs/profile/setup.h"
#include "runtime/kernel/loader.h"
#include "runtime/link/perf_event.h"

namespace rawbpf::inline v0::profile {

class Clocks {
  public:
    /// `setup` must outlive this.
    explicit Clocks(const Setup &setup) : setup_(setup) {}

    /// Whether there is such a tracepoint, before anything else is done. Nothing for other events.
    [[nodiscard]] Result<void> find_tracepoint();
    /// Opens the clocks, disabled. `program` must outlive this.
    [[nodiscard]] Result<void> open(const Program &program);
    /// From here on samples come.
    [[nodiscard]] Result<void> enable();
    /// No more samples: when this returns, no CPU runs the program any more.
    [[nodiscard]] Result<void> disable();
    /// Closes them.
    void close() { links_.clear(); }

    /// ProfileOptions::max_cpu: gives all clocks another rate when the last seconds cost too much (`spent_ns`: CPU time so far,
    /// of rawbpf and its program), or little for long. `told` hears of it: the rate in Hz, and the share of a CPU that was used.
    /// A clock that is given another period begins it anew, so the first sample after the change stands for the new one.
    [[nodiscard]] Result<void> keep_within_budget(uint64_t now_ns, uint64_t spent_ns,
                                                  const std::function<void(double, double)> &told);
    /// A sentence about it at the end; empty: the rate was never lowered.
    [[nodiscard]] std::string slowed(uint64_t elapsed_ns) const;

    /// NamedSample::weight of a sample.
    [[nodiscard]] uint64_t weight(uint32_t cpu, uint64_t t_ns) const {
        return setup_.period ? setup_.period : rates_.at(cpu, t_ns);
    }
    /// A tracepoint's program runs on all CPUs.
    [[nodiscard]] bool on_wanted_cpu(uint32_t cpu) const;

  private:
    const Setup &setup_;
    const Program *program_ = nullptr;
    std::vector<PerfEventLink> links_;
    std::optional<TracepointLink> tracepoint_;
    std::vector<uint32_t> cpus_; // by link
    std::optional<CpuBudget> budget_;
    RateHistory rates_;
    uint32_t slower_ = 1; // than asked for
    uint64_t spent_ns_ = 0;
};

} // namespace rawbpf::inline v0::profile
