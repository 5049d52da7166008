// Records that wait to be processed, in the order in which they came, in a limited amount of memory.
//
//      push --> | chunk | chunk | chunk, being filled |     a chunk: | u32 length, u32 | record, padded to 8 | ...
//                  |
//                  `--> take(): the oldest chunk, its records by next()
//
// Its speed is that of memory: one copy, and an allocation for each chunk. A chunk that is given back is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// Not thread-safe. Several may share one bound.
class Backlog {
  public:
    /// What they share: bytes of chunks, those that are being read included.
    struct Bound {
        uint64_t most = 0;
        uint64_t used = 0;
        uint64_t beyond = 0; ///< more than `most`, for push_needed()
    };
    /// Records in memory of their own.
    class Chunk {
      public:
        /// The record that is next; nothing is between two calls. Empty and false at the end.
        [[nodiscard]] bool next(Bytes &record);
        /// The same, which stays the next one.
        [[nodiscard]] bool peek(Bytes &record) const;
        /// Records that next() hasn't given.
        [[nodiscard]] uint64_t left() const { return left_; }

      private:
        friend class Backlog;
        struct Free {
            void operator()(std::byte *bytes) const { std::free(bytes); }
        };
        std::unique_ptr<std::byte[], Free> bytes_; ///< of malloc(): where there is no memory records are lost and counted
        size_t capacity_ = 0, end_ = 0, at_ = 0;
        uint64_t left_ = 0;
    };

    /// `bound` must outlive this.
    explicit Backlog(Bound &bound) : bound_(bound) {}

    /// Copies a record behind the others. False: it doesn't fit within the bound (or the machine has no memory), and is counted.
    bool push(Bytes record);
    /// For one that push() has just refused, and that others need: also beyond the bound. True: it isn't counted any more.
    bool push_needed(Bytes record);
    /// The oldest record; it stays. The bytes are good until its chunk is given back. Empty and false: there is none.
    [[nodiscard]] bool peek(Bytes &record) const;
    /// Takes the oldest chunk out; one without memory where there is none. To be given back.
    [[nodiscard]] Chunk take();
    void give_back(Chunk chunk);

    /// Records that are here; those in chunks that were taken aren't.
    [[nodiscard]] uint64_t waiting() const { return waiting_; }
    [[nodiscard]] uint64_t refused() const { return refused_; }

    static constexpr size_t kChunkBytes = 256 << 10; ///< the bound is worth at least this much

  private:
    [[nodiscard]] bool place(Bytes record, uint64_t most);
    [[nodiscard]] bool add_chunk(size_t record_bytes, uint64_t most);

    Bound &bound_;
    std::deque<Chunk> chunks_;
    Chunk spare_;
    uint64_t waiting_ = 0, refused_ = 0;
};

} // namespace rawbpf::inline v0
