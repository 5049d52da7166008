#include "programs/session/merged_rings.h"

#include <algorithm>

namespace rawbpf::inline v0::session {
namespace {

uint64_t time_of(Bytes record) { return record.size() >= sizeof(uint64_t) ? load<uint64_t>(record.data()) : 1; }

} // namespace

uint64_t MergedRings::oldest_ns() const {
    uint64_t oldest = 0;
    const auto see = [&](Bytes record) {
        if (oldest == 0 || time_of(record) < oldest) oldest = time_of(record);
    };
    for (size_t ring = 0; ring < reader_.rings(); ++ring) {
        if (Bytes next; reader_.peek(next, ring)) see(next);
        if (!next_[ring].empty()) see(next_[ring]);
    }
    return oldest;
}

/// The next record of a ring, copied into its place in next_; false when the ring is empty.
bool MergedRings::fetch(size_t ring) {
    next_[ring].clear();
    while (next_[ring].empty() && // a record without a byte gives nothing
           reader_.read([&](Bytes record) { next_[ring].assign(record.begin(), record.end()); }, 1, ring) == 1) {
    }
    return !next_[ring].empty();
}

size_t MergedRings::read(const std::function<void(Bytes)> &take, size_t limit) {
    if (reader_.rings() == 1) return reader_.read([&](Bytes record) { take(record); }, limit);
    const auto later = [&](size_t a, size_t b) { return time_of(next_[a]) > time_of(next_[b]); };
    heap_.clear();
    for (size_t ring = 0; ring < reader_.rings(); ++ring)
        if (!next_[ring].empty() || fetch(ring)) heap_.push_back(ring); // the last time may have left one
    std::make_heap(heap_.begin(), heap_.end(), later);
    size_t count = 0;
    while (!heap_.empty() && count < limit) {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        const size_t ring = heap_.back();
        take(next_[ring]);
        ++count;
        if (fetch(ring))
            std::push_heap(heap_.begin(), heap_.end(), later);
        else
            heap_.pop_back();
    }
    return count;
}

uint64_t MergedRings::leave_out() {
    uint64_t count = 0;
    for (size_t ring = 0; ring < reader_.rings(); ++ring) {
        count += reader_.read([](Bytes) {}, SIZE_MAX, ring) + !next_[ring].empty();
        next_[ring].clear();
    }
    return count;
}

} // namespace rawbpf::inline v0::session
