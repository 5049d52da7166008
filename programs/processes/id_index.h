// Finding the id of a thing that was seen before: the one hash table behind places, stacks and counts.
//
//      things:  [ 0 | 1 | 2 | 3 ... ]      a plain vector that the owner keeps; an id is a position in it
//      slots:   [ 2 | - | 0 | - | 3 ...]   open addressing, four bytes a slot, at most two thirds full
//
// A node-based std::unordered_map takes about 56 bytes for an 8-byte entry; this takes 4 to 8 beside the entry itself. The
// profiler keeps hundreds of thousands of entries under a promise of 4 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rawbpf::inline v0::processes {

/// Mixes all bits of `value` into all bits of the result (the finaliser of splitmix64).
[[nodiscard]] inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

class IdIndex {
  public:
    static constexpr uint32_t kNone = UINT32_MAX;

    /// The id for which same(id) holds among those with this hash; kNone if there is none yet.
    template <class Same> [[nodiscard]] uint32_t find(uint64_t hash, Same &&same) const {
        if (slots_.empty()) return kNone;
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask;; at = (at + 1) & mask) {
            if (slots_[at] == kNone || same(slots_[at])) return slots_[at];
        }
    }
    /// Adds an id that find() didn't find. `hash_of(id)` must give the hash of any id added before (for growing).
    template <class HashOf> void add(uint64_t hash, uint32_t id, HashOf &&hash_of) {
        if ((used_ + 1) * 3 > slots_.size() * 2) {
            std::vector<uint32_t> old(slots_.empty() ? 64 : slots_.size() * 2, kNone);
            old.swap(slots_);
            for (uint32_t other : old)
                if (other != kNone) put(hash_of(other), other);
        }
        put(hash, id);
        ++used_;
    }
    void clear() {
        slots_ = {};
        used_ = 0;
    }
    [[nodiscard]] size_t memory() const { return slots_.capacity() * sizeof(uint32_t); }

  private:
    void put(uint64_t hash, uint32_t id) {
        const size_t mask = slots_.size() - 1;
        size_t at = hash & mask;
        while (slots_[at] != kNone) at = (at + 1) & mask;
        slots_[at] = id;
    }
    std::vector<uint32_t> slots_;
    size_t used_ = 0;
};

} // namespace rawbpf::inline v0::processes
