// SPDX-License-Identifier: MIT
// What BPF programs cost: how often they ran and for how long.
#pragma once

#include <cstdint>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

struct LoadedObject;

/// Run-time statistics of all programs on the machine, on while this lives. BPF_ENABLE_STATS (5.8); before it the sysctl
/// kernel.bpf_stats_enabled is set, and put back.
class [[nodiscard]] RunStats {
  public:
    /// Errors: permission (needs CAP_SYS_ADMIN), unsupported before 5.1.
    static Result<RunStats> enable();
    RunStats() = default;
    /// The one moved from switches nothing off any more. What was assigned to does that first.
    ///@{
    RunStats(RunStats &&other) noexcept : fd_(std::move(other.fd_)), by_sysctl_(std::exchange(other.by_sysctl_, false)) {}
    RunStats &operator=(RunStats &&other) noexcept;
    ///@}
    ~RunStats();

  private:
    void stop() noexcept;
    Fd fd_;
    bool by_sysctl_ = false;
};

/// Sums since the program was loaded, over the times when statistics were on.
struct RunCost {
    uint64_t runs = 0;             ///< how often it ran
    uint64_t ns = 0;               ///< how long, in all runs together
    uint64_t recursion_misses = 0; ///< times it was skipped because it, or another on that CPU, was running (5.12)
    /// Adds each of the three.
    RunCost &operator+=(const RunCost &other) {
        runs += other.runs;
        ns += other.ns;
        recursion_misses += other.recursion_misses;
        return *this;
    }
};
/// What one program cost; zeros where statistics were never on (BPF_OBJ_GET_INFO_BY_FD). Errors: the kernel's.
[[nodiscard]] Result<RunCost> run_cost(int program_fd);
/// The object's programs together; one that can't be asked counts for nothing.
[[nodiscard]] RunCost run_cost(const LoadedObject &object);

} // namespace rawbpf::inline v0
