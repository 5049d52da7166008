// See calls.h for the idea. All threads share one table, bounded; the order of events within a thread is that of their records.
#include "programs/trace/calls.h"

namespace rawbpf::inline v0::trace {

uint32_t Calls::call(uint32_t tid, uint32_t place, uint64_t time, uint64_t frame) {
    if (threads_.size() >= kMostThreads && threads_.find(tid) == threads_.end()) {
        for (const auto &[id, open] : threads_) missed_returns_ += open.size();
        threads_.clear();
    }
    std::vector<Open> &open = threads_[tid];
    const auto gone = [&](const Open &call) {
        if (frame == 0 || call.frame == 0) return false;
        return (call.frame < frame && frame - call.frame < kReach) || (call.frame == frame && call.place == place);
    };
    while (!open.empty() && gone(open.back())) {
        open.pop_back();
        ++missed_returns_;
    }
    if (open.size() >= kDeepest) {
        open.erase(open.begin());
        ++missed_returns_;
    }
    open.push_back({place, time, frame});
    return static_cast<uint32_t>(open.size() - 1);
}

Calls::Returned Calls::returned(uint32_t tid, uint32_t place, uint64_t time) {
    Returned out;
    const auto thread = threads_.find(tid);
    if (thread == threads_.end()) {
        ++missed_calls_;
        return out;
    }
    std::vector<Open> &open = thread->second;
    std::size_t at = open.size();
    while (at > 0 && open[at - 1].place != place) --at;
    if (at == 0) { // it was called before we came
        ++missed_calls_;
        return out;
    }
    --at;
    out.paired = true;
    out.depth = static_cast<uint32_t>(at);
    out.missed = static_cast<uint32_t>(open.size() - at - 1);
    missed_returns_ += out.missed;
    out.duration = time > open[at].time ? time - open[at].time : 0;
    out.children = open[at].children;
    open.resize(at);
    if (at > 0) open[at - 1].children += out.duration;
    if (open.empty()) threads_.erase(thread);
    return out;
}

std::span<const Calls::Open> Calls::open(uint32_t tid) const {
    const auto thread = threads_.find(tid);
    return thread == threads_.end() ? std::span<const Open>() : thread->second;
}

uint64_t Calls::still_open() const {
    uint64_t sum = 0;
    for (const auto &[tid, open] : threads_) sum += open.size();
    return sum;
}

} // namespace rawbpf::inline v0::trace
