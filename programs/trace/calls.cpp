// See calls.h for the idea. All threads share one table, bounded; the order of events within a thread is that of their records.
#include "programs/trace/calls.h"

namespace rawbpf::inline v0::trace {

namespace {

// How many of these the kernel could watch.
std::size_t users(const std::vector<Calls::Open> &open) {
    std::size_t n = 0;
    for (const Calls::Open &call : open) n += call.user;
    return n;
}

} // namespace

// The innermost call, whose return never came.
void Calls::drop(std::vector<Open> &open) {
    ++(open.back().user && open.size() > kWatched && users(open) > kWatched ? too_deep_ : missed_returns_);
    open.pop_back();
}

void Calls::drop_unwatched(std::vector<Open> &open) {
    if (open.size() <= kWatched) return; // nearly always
    for (std::size_t n = users(open); n > kWatched; open.pop_back()) {
        const bool user = open.back().user;
        ++(user ? too_deep_ : missed_returns_);
        n -= user;
    }
}

uint32_t Calls::call(uint64_t caller, uint32_t place, uint64_t time, uint64_t frame, bool user) {
    if (threads_.size() >= kMostThreads && threads_.find(caller) == threads_.end()) {
        for (const auto &[id, open] : threads_) missed_returns_ += open.size();
        threads_.clear();
    }
    std::vector<Open> &open = threads_[caller];
    const auto gone = [&](const Open &call) {
        if (frame == 0 || call.frame == 0) return false;
        return (call.frame < frame && frame - call.frame < kReach) || (call.frame == frame && call.place == place);
    };
    while (!open.empty() && gone(open.back())) drop(open);
    if (open.size() >= kDeepest) {
        open.erase(open.begin());
        ++missed_returns_;
    }
    open.push_back({place, time, frame, 0, user});
    return static_cast<uint32_t>(open.size() - 1);
}

Calls::Returned Calls::returned(uint64_t caller, uint32_t place, uint64_t time, bool user) {
    Returned out;
    const auto thread = threads_.find(caller);
    if (thread == threads_.end()) {
        ++missed_calls_;
        return out;
    }
    std::vector<Open> &open = thread->second;
    if (user) drop_unwatched(open);
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

void Calls::began_program(uint64_t caller, bool goroutine) {
    const auto thread = threads_.find(caller);
    if (thread == threads_.end()) return;
    replaced_ += std::erase_if(thread->second, [&](const Open &call) { return call.user || goroutine; });
    if (thread->second.empty()) threads_.erase(thread);
}

std::span<const Calls::Open> Calls::open(uint64_t caller) const {
    const auto thread = threads_.find(caller);
    return thread == threads_.end() ? std::span<const Open>() : thread->second;
}

std::vector<std::pair<uint64_t, uint64_t>> Calls::still_open() const {
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (const auto &[caller, open] : threads_)
        if (!open.empty()) out.emplace_back(caller, open.size());
    return out;
}

} // namespace rawbpf::inline v0::trace
