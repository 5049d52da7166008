// Traces counted: what ledgers and the line of totals say of them, live, recorded, or of a recording.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "programs/custom/located.h"
#include "programs/processes/stack_ends.h"

namespace rawbpf::inline v0::custom {

class Tally {
  public:
    /// `guarded`: contexts by way of the per-CPU map are checked to be their thread's. `off_cpu`: totals() has waits, too.
    Tally(bool guarded, bool off_cpu) : guarded_(guarded), off_cpu_(off_cpu) {}

    void add(const LocatedTrace &trace);
    [[nodiscard]] uint64_t shown() const { return shown_; }
    /// Shown but incomplete, by reason.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> degraded() const;
    /// Why user stacks ended, by reason; empty where none was walked by programs that have tables.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> stack_ends() const { return ends_.list(); }
    /// "Traces - Total: 12, Custom: 5, Sampling: 7".
    [[nodiscard]] std::string totals() const;

  private:
    bool guarded_, off_cpu_;
    uint64_t shown_ = 0, by_origin_[4] = {};
    uint64_t unreadable_ = 0, truncated_ = 0, unchecked_ = 0, unknown_ = 0;
    processes::StackEnds ends_;
};

} // namespace rawbpf::inline v0::custom
