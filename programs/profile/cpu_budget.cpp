// The rate goes down at once and up slowly, in halves and doubles.
//
//      use of a CPU, by the last two seconds
//      over the share          half the rate; a quarter, where it is more than three times too much
//      below 0.4 of it         for five seconds: double the rate. If that was too much, ten seconds the next time, then twenty ...
//      between                 as it is
//
// After each turn the window begins anew, and nothing is judged before it has a second: what a rate costs is seen only then.
// Powers of two make what a sample stands for a whole number: of a clock of 99 Hz that ticks at a quarter of that, each sample
// counts four, and sums over the whole run are what they would have been.
#include "programs/profile/cpu_budget.h"

#include <algorithm>

namespace rawbpf::inline v0::profile {

namespace {
constexpr double kLittle = 0.4; // doubled it stays below the share, with some room
constexpr double kFarTooMuch = 3;
} // namespace

void CpuBudget::turn(uint32_t slower, const Point &now) {
    slower_ = slower;
    slowest_ = std::max(slowest_, slower);
    window_.assign(1, now);
    calm_since_ns_ = now.now_ns;
}

uint32_t CpuBudget::update(uint64_t now_ns, uint64_t used_ns) {
    const Point now{now_ns, used_ns};
    if (window_.empty()) {
        turn(slower_, now);
        return slower_;
    }
    if (slower_ > 1) slowed_ns_ += now_ns - window_.back().now_ns;
    window_.push_back(now);
    while (window_.size() > 2 && now_ns - window_[1].now_ns >= kWindowNs) window_.pop_front();
    const uint64_t length = now_ns - window_.front().now_ns;
    if (length < kLeastNs) return slower_;
    use_ = static_cast<double>(used_ns - window_.front().used_ns) / static_cast<double>(length);
    if (use_ > share_) {
        calm_since_ns_ = now_ns;
        if (slower_ == most_) return slower_;
        if (raised_) patience_ns_ = std::min(2 * patience_ns_, kMostPatienceNs);
        raised_ = false;
        turn(std::min(slower_ * (use_ > kFarTooMuch * share_ ? 4 : 2), most_), now);
    } else if (use_ > kLittle * share_) {
        calm_since_ns_ = now_ns;
    } else if (slower_ > 1 && now_ns - calm_since_ns_ >= patience_ns_) {
        raised_ = true;
        turn(slower_ / 2, now);
    }
    return slower_;
}

void RateHistory::change(uint32_t cpu, uint64_t t_ns, uint32_t slower) {
    if (cpus_.size() <= cpu) cpus_.resize(cpu + 1);
    cpus_[cpu].push_back({t_ns, slower});
    if (cpus_[cpu].size() > kKept) cpus_[cpu].pop_front();
}

uint32_t RateHistory::at(uint32_t cpu, uint64_t t_ns) const {
    uint32_t slower = 1;
    if (cpu >= cpus_.size()) return slower;
    for (const Change &change : cpus_[cpu]) {
        if (change.t_ns > t_ns) break;
        slower = change.slower;
    }
    return slower;
}

} // namespace rawbpf::inline v0::profile
