// Best fit over a sorted list of free pieces. There are few: a table takes a handful of pieces and gives them back together, and
// lists of mappings are small; so a list that is walked beats a tree, and pieces that touch become one again.
//
//      allocate --> in use --> release --> quarantine --settle()--> free
//
// settle() costs a grace period of RCU, some ten milliseconds in which nothing else is done. It is asked for only when there is
// enough to be won, and before a new pool is made.
#include "programs/unwind/pools.h"

#include <algorithm>

namespace rawbpf::inline v0::unwind {

namespace {

constexpr uint32_t kAlignment = 32;
constexpr uint64_t kWorthSettling = UNWIND_POOL_BYTES / 2;

uint32_t rounded(uint32_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }
uint32_t pool_of(uint32_t position) { return position >> UNWIND_POOL_BITS; }

} // namespace

std::optional<uint32_t> Pools::take(uint32_t bytes) {
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at)
        if (at->bytes >= bytes && (best == free_.end() || at->bytes < best->bytes)) best = at;
    if (best == free_.end()) return std::nullopt;
    const uint32_t position = best->position;
    best->position += bytes;
    best->bytes -= bytes;
    if (best->bytes == 0) free_.erase(best);
    used_ += bytes;
    return position;
}

void Pools::insert(Extent extent) {
    auto next = std::lower_bound(free_.begin(), free_.end(), extent.position,
                                 [](const Extent &e, uint32_t position) { return e.position < position; });
    const auto touch = [](const Extent &a, const Extent &b) {
        return a.position + a.bytes == b.position && pool_of(a.position) == pool_of(b.position);
    };
    if (next != free_.begin() && touch(*(next - 1), extent)) {
        (next - 1)->bytes += extent.bytes;
        if (next != free_.end() && touch(*(next - 1), *next)) {
            (next - 1)->bytes += next->bytes;
            free_.erase(next);
        }
    } else if (next != free_.end() && touch(extent, *next)) {
        next->position = extent.position;
        next->bytes += extent.bytes;
    } else {
        free_.insert(next, extent);
    }
}

bool Pools::settle() {
    if (auto settled = source_.settle(); !settled) {
        failure_ = std::move(settled).error();
        return false;
    }
    ++edition_;
    for (const Extent &extent : quarantine_) insert(extent);
    quarantine_.clear();
    waiting_ = 0;
    return true;
}

std::optional<uint32_t> Pools::allocate(uint32_t bytes) {
    bytes = rounded(std::max(bytes, 1u));
    if (bytes > UNWIND_POOL_BYTES) return std::nullopt;
    if (auto position = take(bytes)) return position;
    const bool full = pools_.size() >= most_;
    if (waiting_ >= (full ? bytes : kWorthSettling) && settle())
        if (auto position = take(bytes)) return position;
    if (full) return std::nullopt;
    const auto pool = static_cast<uint32_t>(pools_.size());
    auto memory = source_.add(pool);
    if (!memory) {
        failure_ = std::move(memory).error();
        most_ = pool; // asking again and again would help nobody
        return std::nullopt;
    }
    pools_.push_back(*memory);
    insert({pool << UNWIND_POOL_BITS, UNWIND_POOL_BYTES});
    return take(bytes);
}

void Pools::release(uint32_t position, uint32_t bytes) {
    bytes = rounded(std::max(bytes, 1u));
    used_ -= bytes;
    waiting_ += bytes;
    quarantine_.push_back({position, bytes});
}

} // namespace rawbpf::inline v0::unwind
