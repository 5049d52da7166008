// SPDX-License-Identifier: MIT
// The BPF ring buffer (5.8): many CPUs write, one reader reads.
//
//      page 0           page 1            pages 2..n         the same pages again
//      [ consumer pos ] [ producer pos ]  [ data ......... ] [ data ......... ]
//        read-write       read-only         a record that wraps is contiguous thanks to the second mapping
//
//      record: u32 length (bit 31 BUSY, bit 30 DISCARD), u32 page offset, payload, padded to 8
//
// How the reader's position is given back to the kernel, and why not at once, is told in ring_buffer.cpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

/// The reading end of one BPF_MAP_TYPE_RINGBUF (5.8). One reader a ring; thread-compatible.
///
///     for (;;) {
///         ring.consume([&](Bytes record) { ... });
///         RAWBPF_TRY(ring.wait(100));
///     }
///
/// or, with a CPU to burn: for (;;) ring.busy_poll([&](Bytes record) { ... });
class RingBuffer {
  public:
    /// Maps the ring of a BPF_MAP_TYPE_RINGBUF; `map_fd` is borrowed and must outlive this. `size` = its max_entries, in bytes:
    /// a power of two and a multiple of the page size.
    [[nodiscard]] static Result<RingBuffer> open(int map_fd, size_t size);

    /// A ring that is mapped already: `consumer` is page 0, `producer` page 1 followed by the data twice. `wake_fd` (borrowed)
    /// is what wait() polls. For tests, and for rings that somebody else mapped.
    [[nodiscard]] static Result<RingBuffer> over(sys::Mapping consumer, sys::Mapping producer, size_t size, int wake_fd);

    /// The one moved from has no ring any more: it may only be destroyed or assigned to. What was assigned to gives everything
    /// read back first.
    ///@{
    RingBuffer(RingBuffer &&) noexcept = default;
    RingBuffer &operator=(RingBuffer &&other) noexcept;
    ///@}
    /// Gives everything read back to the kernel, so that a later reader of the same map doesn't see it again.
    ~RingBuffer() { release(); }

    /// Calls `handle(Bytes record)` for each complete record, at most `limit` of them; returns how many were consumed
    /// (discarded ones included). The bytes are valid during the call only. Inlined so that the handler is, too. A handler
    /// that returns bool stops by returning false; its record counts as consumed. What arrives during the call is left for the
    /// next one, so a call ends however fast the producers are.
    template <class Handler> size_t consume(Handler &&handle, size_t limit = SIZE_MAX);

    /// consume(), for a loop that does nothing else: when little came it pauses for a moment, a microsecond or two at most, so
    /// that looking doesn't slow the producers down.
    template <class Handler> size_t busy_poll(Handler &&handle, size_t limit = SIZE_MAX);

    /// Waits until there is something to read, or the timeout (milliseconds; -1: for ever). False on time-out or a signal; true
    /// means that a look is worth it. Fails with bad_input once damaged().
    [[nodiscard]] Result<bool> wait(int timeout_ms);
    /// For callers who sleep in an epoll set of their own: gives everything read back, which arms the wake-up. False: there is a
    /// complete record already, so don't sleep.
    [[nodiscard]] bool prepare_wait();
    /// For callers with an epoll set of their own: becomes readable once prepare_wait() returned true and a record came after.
    [[nodiscard]] int poll_fd() const { return wake_fd_; }

    /// Bytes not yet consumed, headers included.
    [[nodiscard]] size_t available() const { return produced() - position_; }
    /// Bytes consumed since the map was made, likewise; it starts at 0 again after the largest size_t.
    [[nodiscard]] size_t consumed() const { return position_; }
    /// Size of the data area in bytes.
    [[nodiscard]] size_t size() const { return mask_ + 1; }
    /// Records so far that their producer gave up (bpf_ringbuf_discard).
    [[nodiscard]] uint64_t discarded() const { return discarded_; }
    /// The ring holds something that no kernel writes: a record longer than what was produced, or positions further apart than
    /// the ring is long. Nothing more is read from it.
    [[nodiscard]] bool damaged() const { return damaged_; }

  private:
    static constexpr uint32_t kBusy = 1u << 31, kDiscard = 1u << 30; // BPF_RINGBUF_BUSY_BIT, BPF_RINGBUF_DISCARD_BIT
    static constexpr size_t kHeader = 8;                             // BPF_RINGBUF_HDR_SZ
    static constexpr size_t kWorthPublishing = 16;                   // records in one call
    static constexpr size_t kPlenty = 64;                            // records in one call that show that looking is rare enough
    static constexpr uint32_t kLongestPause = 64;                    // pause instructions, 10 to 50 ns each
    static constexpr uint32_t kPausesOfASleep = 8;                   // the longest pauses that cost as much as a sleep
    static constexpr uint32_t kIdle = 32, kVeryIdle = 1u << 20;      // calls in a row that found nothing

    RingBuffer() = default;
    [[nodiscard]] size_t *consumer_position() const { return reinterpret_cast<size_t *>(consumer_.data()); }
    [[nodiscard]] size_t produced() const {
        return __atomic_load_n(reinterpret_cast<const size_t *>(producer_.data()), __ATOMIC_ACQUIRE);
    }
    void publish(size_t position) {
        published_ = position;
        __atomic_store_n(consumer_position(), position, __ATOMIC_RELEASE);
    }
    static void relax(uint32_t pauses);
    void settle(size_t position, size_t count);
    [[nodiscard]] bool readable() const;
    [[nodiscard]] Result<bool> sleep(int timeout_ms);
    void release() noexcept;

    int wake_fd_ = -1;
    Fd epoll_;
    sys::Mapping consumer_, producer_;
    const std::byte *data_ = nullptr;
    size_t mask_ = 0;
    size_t batch_ = 0;     // bytes read but not given back, at most, within a call
    size_t position_ = 0;  // the first byte not read
    size_t last_ = 0;      // where the record before that one starts
    size_t published_ = 0; // what the kernel knows: <= position_
    uint32_t idle_ = 0;    // calls in a row that found nothing
    uint32_t pause_ = 1;   // of busy_poll(), in pause instructions
    size_t burst_ = 0;     // records since the last wait()
    uint64_t discarded_ = 0;
    bool damaged_ = false;
};

template <class Handler> size_t RingBuffer::consume(Handler &&handle, size_t limit) {
    // A guard, so that a handler of an embedder that throws leaves the ring after its record, not before it.
    struct Progress {
        RingBuffer &ring;
        size_t at, count = 0;
        ~Progress() { ring.settle(at, count); }
    } now{*this, position_};
    const size_t end = produced();
    if (end - now.at > size()) [[unlikely]]
        damaged_ = true;
    if (damaged_) [[unlikely]]
        return 0;
    while (now.at != end && now.count < limit) {
        const std::byte *header = data_ + (now.at & mask_);
        const uint32_t word = __atomic_load_n(reinterpret_cast<const uint32_t *>(header), __ATOMIC_ACQUIRE);
        if (word & kBusy) break;
        const size_t length = word & ~(kBusy | kDiscard);
        const size_t whole = (kHeader + length + 7) & ~size_t{7};
        if (whole > end - now.at) [[unlikely]] {
            damaged_ = true;
            break;
        }
        if (now.at - published_ >= batch_) publish(now.at);
        last_ = now.at;
        now.at += whole;
        ++now.count;
        if (word & kDiscard) {
            ++discarded_;
        } else if constexpr (std::is_same_v<decltype(handle(Bytes{})), bool>) {
            if (!handle(Bytes(header + kHeader, length))) break;
        } else {
            handle(Bytes(header + kHeader, length));
        }
    }
    return now.count;
}

template <class Handler> size_t RingBuffer::busy_poll(Handler &&handle, size_t limit) {
    const size_t count = consume(handle, limit);
    if (count >= kPlenty) {
        pause_ = pause_ > 1 ? pause_ / 2 : 1;
    } else if (count < limit) {
        if (count > 0 && count < kWorthPublishing) pause_ = pause_ < kLongestPause ? pause_ * 2 : kLongestPause;
        relax(pause_);
    }
    return count;
}

inline void RingBuffer::relax(uint32_t pauses) {
    for (uint32_t i = 0; i < pauses; ++i) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb" ::: "memory"); // yield does nothing on most
#endif
    }
}

/// The end of a consume(): which position the kernel is told, if any. Told in ring_buffer.cpp.
inline void RingBuffer::settle(size_t position, size_t count) {
    position_ = position;
    if (count == 0) {
        ++idle_;
        if (idle_ == kIdle && published_ < last_) publish(last_);
        if (idle_ == kVeryIdle) publish(position_);
        return;
    }
    idle_ = 0;
    burst_ += count;
    if (position - last_ >= batch_)
        publish(position);
    else if (count >= kWorthPublishing || position - published_ >= batch_)
        publish(last_);
}

} // namespace rawbpf::inline v0
