// Rings that are read slower than they are filled, for a while.
//
//      kernel --> ring, small --move--> Backlog, large --read()--> whoever formats, writes, sends
//
// What moves records is whoever comes first: read() before each chunk that it hands over, and, once keep_up() was called, a
// thread that looks after the rings while the caller is busy or waits for a slow disk. It sleeps while the caller does.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/events/backlog.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/sys/ticker.h"

namespace rawbpf::inline v0 {

/// Everything but what `refused` is called from belongs to one thread: the caller's.
class RingReader {
  public:
    /// Is shown each record that the backlog had no room for, whichever thread comes upon it; one at a time. Must be short.
    using Refused = std::function<void(Bytes)>;
    /// Says of a record that it would be refused whether others need it, as the names of their functions: then there is more
    /// room, kNeededBytes. Likewise.
    using Needed = std::function<bool(Bytes)>;
    static constexpr uint64_t kNeededBytes = 16 << 20;

    /// `rings`: each by itself is in order. `backlog`: bytes at most, of all of them together; at least a chunk of each is
    /// granted.
    RingReader(std::vector<RingBuffer> rings, uint64_t backlog, Refused refused, Needed needed = {});
    ~RingReader();
    RingReader(const RingReader &) = delete;
    RingReader &operator=(const RingReader &) = delete;

    /// Starts the thread, where there can be one. To be called when records begin to come.
    void keep_up();
    /// Ends it, and moves what the rings have: for when nothing comes any more. The rest is read() as before.
    void stop();

    /// Calls `handle(Bytes record)` for the records that are there now, at most `limit`, and returns how many it was. The bytes
    /// are good until the handler returns. A handler that returns bool stops by returning false.
    template <class Handler> size_t read(Handler &&handle, size_t limit = SIZE_MAX, size_t ring = 0);
    /// The record that read() would begin with, if one is in the backlog (behind()); it stays. The bytes are good until the next
    /// read().
    [[nodiscard]] bool peek(Bytes &record, size_t ring = 0) const;
    /// Whether records lie in the backlog.
    [[nodiscard]] bool behind() const { return waiting() != 0; }
    /// How many.
    [[nodiscard]] uint64_t waiting() const;
    /// How many the backlog had no room for.
    [[nodiscard]] uint64_t refused() const;
    /// Gives everything that was read back to the kernel, which arms the wake-up by wake_fd(). False: there are records already.
    [[nodiscard]] bool may_sleep();

    [[nodiscard]] size_t rings() const { return lanes_.size(); }
    [[nodiscard]] int wake_fd(size_t ring = 0) const { return lanes_[ring].ring.poll_fd(); }
    [[nodiscard]] size_t ring_bytes() const;
    /// Whether a thread moves records.
    [[nodiscard]] bool has_thread() const { return ticker_ != nullptr; }

  private:
    struct Lane {
        RingBuffer ring;
        Backlog backlog;
        Backlog::Chunk reading; ///< the caller's alone
    };
    void move_all();
    size_t move_some(Lane &lane);
    uint64_t tick();
    /// Lets the chunk that was read go, moves what the rings have, and takes the oldest. False: there is none.
    bool refill(Lane &lane);

    mutable sys::Lock lock_; ///< of rings and backlogs
    Backlog::Bound bound_;
    std::vector<Lane> lanes_;
    Refused refused_;
    Needed needed_;
    std::atomic<bool> sleeps_{false}; ///< the caller does, and the kernel wakes it
    uint64_t tick_ns_ = 0;
    uint32_t quiet_ = 0; ///< ticks in a row in which there was nothing to do
    std::unique_ptr<sys::Ticker> ticker_;
};

template <class Handler> size_t RingReader::read(Handler &&handle, size_t limit, size_t ring) {
    Lane &lane = lanes_[ring];
    // What is there now is what can be handed over: else a fast producer would keep us here for good.
    if (lane.reading.left() == 0 && !refill(lane)) return 0;
    uint64_t left = lane.reading.left();
    {
        sys::Locked now(lock_);
        left += lane.backlog.waiting();
    }
    if (left > limit) left = limit;
    size_t count = 0;
    while (count < left) {
        Bytes record;
        if (!lane.reading.next(record)) {
            if (!refill(lane)) break;
            continue;
        }
        ++count;
        if constexpr (std::is_same_v<decltype(handle(record)), bool>) {
            if (!handle(record)) break;
        } else {
            handle(record);
        }
    }
    return count;
}

} // namespace rawbpf::inline v0
