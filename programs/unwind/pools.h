// The memory that the unwinder's tables lie in: pools of 1 MiB that programs read and user space writes.
//
//      pool 0                              pool 1
//      | directory | rows | list |  free | rows | in quarantine |    position = pool << 20 | byte
//
// Bytes in use never move. Bytes given back may still be read by a program that saw them a moment ago, so they stay in quarantine
// until the kernel says that no such program runs any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

/// Where pools come from: the kernel's maps, or a fake.
class PoolSource {
  public:
    virtual ~PoolSource() = default;
    /// A new pool's UNWIND_POOL_BYTES, zero; programs may see it only after the next publish().
    virtual Result<std::byte *> add(uint32_t pool) = 0;
    /// Returns when programs see all pools.
    virtual Result<void> publish() = 0;
    /// Returns when no program runs any more that ran before the call.
    virtual Result<void> settle() = 0;
};

class Pools {
  public:
    /// At most `most` pools are made, each when it is first needed.
    Pools(PoolSource &source, uint32_t most) : source_(source), most_(most) {}

    /// Room for that many bytes in one pool, aligned to 32. nullopt: there is none, or no pool could be made (see failure()).
    [[nodiscard]] std::optional<uint32_t> allocate(uint32_t bytes);
    /// Gives back what allocate() gave, once nothing that is published leads there any more.
    void release(uint32_t position, uint32_t bytes);
    /// Where to write; valid as long as the Pools.
    [[nodiscard]] std::byte *at(uint32_t position) const {
        return pools_[position >> UNWIND_POOL_BITS] + UNWIND_POOL_AT(position);
    }

    [[nodiscard]] uint64_t used() const { return used_; }                               ///< bytes, without those in quarantine
    [[nodiscard]] uint64_t most() const { return uint64_t{most_} * UNWIND_POOL_BYTES; } ///< bytes that there can be
    /// How often bytes that were given back came to be free for others: what a program remembers of positions is true as long as
    /// this stays.
    [[nodiscard]] uint32_t edition() const { return edition_; }
    [[nodiscard]] size_t pools() const { return pools_.size(); }
    /// Why the last pool couldn't be made; nullptr when none failed.
    [[nodiscard]] const Error *failure() const { return failure_ ? &*failure_ : nullptr; }

  private:
    struct Extent {
        uint32_t position, bytes;
    };
    [[nodiscard]] std::optional<uint32_t> take(uint32_t bytes);
    void insert(Extent extent);
    [[nodiscard]] bool settle();

    PoolSource &source_;
    uint32_t most_;
    std::vector<std::byte *> pools_;
    std::vector<Extent> free_;       // by position, none touches the next
    std::vector<Extent> quarantine_; // as they came
    uint64_t used_ = 0, waiting_ = 0;
    uint32_t edition_ = 0;
    std::optional<Error> failure_;
};

} // namespace rawbpf::inline v0::unwind
