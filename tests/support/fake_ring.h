// A BPF ring buffer in plain memory, with the producer's side played by the test: the same layout, the same double mapping,
// the same order of writes as kernel/bpf/ringbuf.c, and a count of the wake-ups that the kernel would have sent.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/events/ring_buffer.h"

namespace rawbpf::test {

class FakeRing {
  public:
    static constexpr uint32_t kBusy = 1u << 31, kDiscard = 1u << 30;

    explicit FakeRing(size_t size) : size_(size), page_(sys::page_size()) {
        memory_ = memfd_create("ring", MFD_CLOEXEC);
        wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (ftruncate(memory_, static_cast<off_t>(2 * page_ + size)) != 0) std::abort();
        base_ = twice(PROT_READ | PROT_WRITE);
    }
    ~FakeRing() {
        munmap(base_, 2 * page_ + 2 * size_);
        close(memory_);
        close(wake_);
    }
    FakeRing(const FakeRing &) = delete;
    FakeRing &operator=(const FakeRing &) = delete;

    /// The reader under test, with mappings of its own as it would get them from the kernel.
    RingBuffer reader() {
        std::byte *view = twice(PROT_READ | PROT_WRITE);
        return RingBuffer::over(sys::Mapping(view, page_), sys::Mapping(view + page_, page_ + 2 * size_), size_, wake_).value();
    }

    size_t &consumer() { return *reinterpret_cast<size_t *>(base_); }
    size_t &producer() { return *reinterpret_cast<size_t *>(base_ + page_); }
    std::byte *at(size_t position) { return base_ + 2 * page_ + (position & (size_ - 1)); }

    /// Space for a record, BUSY; false when the ring is full, by the kernel's arithmetic.
    bool reserve(size_t length, size_t &position) {
        const size_t whole = (length + 8 + 7) & ~size_t{7};
        if (producer() + whole - __atomic_load_n(&consumer(), __ATOMIC_ACQUIRE) > size_ - 1) return false;
        position = producer();
        const uint32_t header[2] = {static_cast<uint32_t>(length) | kBusy, 0};
        std::memcpy(at(position), header, sizeof header);
        __atomic_store_n(&producer(), position + whole, __ATOMIC_RELEASE);
        return true;
    }
    /// Ends a record; true when the kernel would have woken the reader.
    bool commit(size_t position, bool discard = false) {
        auto *word = reinterpret_cast<uint32_t *>(at(position));
        __atomic_exchange_n(word, (*word ^ kBusy) | (discard ? kDiscard : 0), __ATOMIC_SEQ_CST);
        if ((__atomic_load_n(&consumer(), __ATOMIC_ACQUIRE) & (size_ - 1)) != (position & (size_ - 1))) return false;
        const uint64_t one = 1;
        ++wakeups;
        return write(wake_, &one, sizeof one) == sizeof one;
    }
    bool put(std::string_view payload) {
        size_t position;
        if (!reserve(payload.size(), position)) return false;
        std::memcpy(at(position) + 8, payload.data(), payload.size());
        commit(position);
        return true;
    }

    uint64_t wakeups = 0;

  private:
    std::byte *twice(int protection) {
        auto *at = static_cast<std::byte *>(
            mmap(nullptr, 2 * page_ + 2 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        const off_t data = static_cast<off_t>(2 * page_);
        if (at == MAP_FAILED || mmap(at, 2 * page_ + size_, protection, MAP_SHARED | MAP_FIXED, memory_, 0) == MAP_FAILED ||
            mmap(at + 2 * page_ + size_, size_, protection, MAP_SHARED | MAP_FIXED, memory_, data) == MAP_FAILED)
            std::abort();
        return at;
    }
    size_t size_, page_;
    int memory_, wake_;
    std::byte *base_;
};

} // namespace rawbpf::test
