// --max-cpu: a profile that may cost so much and no more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace rawbpf::inline v0::profile {

/// The most that a clock's sample stands for.
inline constexpr uint32_t kMostWeight = 64;

/// How much slower than asked for the clock should tick, so that the profile stays within its share of a CPU. A pure function of
/// what it is told: no clock, no kernel.
class CpuBudget {
  public:
    static constexpr uint64_t kWindowNs = 2'000'000'000, kLeastNs = 1'000'000'000; ///< looked back; known before anything is done
    static constexpr uint64_t kPatienceNs = 5'000'000'000,
                              kMostPatienceNs = 80'000'000'000; ///< of little use, before going faster

    /// `share`: of one CPU, 0.01 is 1 %. `most`: the slowest, a power of two.
    CpuBudget(double share, uint32_t most) : share_(share), most_(most) {}
    /// CPU time used so far, at this moment, both in ns and never less than before; some ten times a second. Returns 1, 2, 4 ...
    /// `most`: each so many-th tick is enough.
    uint32_t update(uint64_t now_ns, uint64_t used_ns);

    [[nodiscard]] double use() const { return use_; }               ///< share of a CPU, of the last window
    [[nodiscard]] uint32_t slowest() const { return slowest_; }     ///< that it ever was
    [[nodiscard]] uint64_t slowed_ns() const { return slowed_ns_; } ///< time at less than the full rate

  private:
    struct Point {
        uint64_t now_ns, used_ns;
    };
    void turn(uint32_t slower, const Point &now);

    double share_, use_ = 0;
    uint32_t most_, slower_ = 1, slowest_ = 1;
    std::deque<Point> window_;
    uint64_t calm_since_ns_ = 0, patience_ns_ = kPatienceNs, slowed_ns_ = 0;
    bool raised_ = false; // the last turn was to go faster
};

/// When each CPU's clock changed its rate: what a sample stands for follows from its time.
class RateHistory {
  public:
    /// From `t_ns` on this CPU ticks so much slower.
    void change(uint32_t cpu, uint64_t t_ns, uint32_t slower);
    /// What a sample of that time stands for.
    [[nodiscard]] uint32_t at(uint32_t cpu, uint64_t t_ns) const;

  private:
    struct Change {
        uint64_t t_ns;
        uint32_t slower;
    };
    static constexpr size_t kKept = 16; // a CPU: samples arrive a fraction of a second late
    std::vector<std::deque<Change>> cpus_;
};

} // namespace rawbpf::inline v0::profile
