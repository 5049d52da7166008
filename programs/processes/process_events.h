// The kernel's news of processes (fork, exec, mmap, exit), from one ring a CPU into the table of processes, in the order of time.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "programs/processes/process_table.h"
#include "runtime/events/perf_ring.h"

namespace rawbpf::inline v0::processes {

class ProcessEvents {
  public:
    struct Options {
        int follow = -1; ///< only this process and what it starts, from its next exec on; -1: every process
        size_t ring_bytes = 128 << 10;
        bool at_once = false; ///< each record wakes the reader of the ring; otherwise the ring wakes it when half full
    };
    /// Opens one ring on each CPU that is online. Errors: permission.
    [[nodiscard]] Result<void> open(const Options &options);

    /// Reads this ring, too. For tests.
    void adopt(SidebandRing ring) { rings_.push_back(std::move(ring)); }
    /// Takes what is in the rings. Everything that happened before this call is in the queue afterwards.
    void gather();
    /// Applies what happened up to then.
    void apply(uint64_t until_ns, ProcessTable &table);
    /// Whether something waits for apply().
    [[nodiscard]] bool waiting() const { return !queue_.empty(); }
    /// Whether apply() of that time has anything to tell.
    [[nodiscard]] bool due(uint64_t until_ns) const { return !queue_.empty() && queue_.front().t_ns <= until_ns; }
    /// When gather() was last called: what happened later may not be in the queue.
    [[nodiscard]] uint64_t gathered_ns() const { return gathered_ns_; }

    [[nodiscard]] const std::vector<SidebandRing> &rings() const { return rings_; }
    [[nodiscard]] size_t bytes() const;
    /// Records that found no room: names of processes started meanwhile may be missing.
    [[nodiscard]] uint64_t lost() const;

  private:
    struct Event {
        enum class Kind : uint8_t { map, exec, fork, thread, exit, thread_exit } kind;
        uint64_t t_ns;
        uint64_t order; // in which they were read, which tells events of one time (and ring) apart
        uint32_t pid, parent;
        symbols::Region region;
    };
    void take(const SidebandRecord &record);

    std::vector<SidebandRing> rings_;
    std::deque<Event> queue_; // ascending by time
    uint64_t gathered_ns_ = 0, lost_applied_ = 0, taken_ = 0;
};

/// These processes, and with `children` all that descend from them, are wanted from now on. The news of forks must be coming
/// already, so that no child is missed between reading /proc and reading the events.
void want_family(ProcessTable &table, const std::vector<int> &pids, bool children);

} // namespace rawbpf::inline v0::processes
