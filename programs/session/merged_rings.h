// Records of several rings, in the order of time. Each ring is in order by itself, so the next record is the least of the heads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/events/ring_reader.h"

namespace rawbpf::inline v0::session {

class MergedRings {
  public:
    /// A record's time (CLOCK_MONOTONIC) stands first; a malformed one comes first. `reader` must outlive this.
    explicit MergedRings(RingReader &reader) : reader_(reader), next_(reader.rings()) {}

    /// Calls `take` for the records that are there now, at most `limit`, and returns how many it was. The bytes are good until it
    /// returns.
    size_t read(const std::function<void(Bytes)> &take, size_t limit);
    /// The time of the oldest record that waits to be read; 0: none does.
    [[nodiscard]] uint64_t oldest_ns() const;
    /// Throws away what waits, and returns how many records it was.
    uint64_t leave_out();

  private:
    bool fetch(size_t ring);

    RingReader &reader_;
    std::vector<std::vector<std::byte>> next_; // by ring: its next record, while rings are merged
    std::vector<size_t> heap_;                 // rings with a record waiting
};

} // namespace rawbpf::inline v0::session
