// The reading end of the BPF ring buffer (kernel/bpf/ringbuf.c; ring buffers came with 5.8).
//
// Positions are byte counts since the ring was made; they only grow, and `position & mask` is the place in the data. A
// producer takes its space and writes BUSY into the record's length under a lock, then moves the producer position, so all
// that lies between the two positions has a length that can be trusted to be one: BUSY (being written), or final.
//
//            consumer position                      producer position
//                  v                                       v
//      .. read .. [ len | payload ][ DISCARD | ... ][ BUSY | ... ] .. free ..
//
// A record that is done is announced in its length alone: the producer clears BUSY with an atomic exchange, and then asks
//
//      is the consumer position exactly at my record?  then the consumer may be asleep: wake it (irq_work, an interrupt)
//
// Everything that is peculiar here follows from that question.
//
// 1. A reader that is about to sleep must first store its exact position and only then look at the length once more, with a
//    full barrier between the two. The producer does the same in reverse (exchange the length, then load the position), so at
//    least one of them sees the other: Dekker's handshake. With a mere release store both can miss, and a wake-up is lost.
//
// 2. A reader that does NOT mean to sleep should never let the answer be yes. One that polls keeps up with the producer, so
//    after every record its position is exactly where the next record goes, and the producer sends itself an interrupt for
//    each: some microseconds on a virtual machine, against 30 ns for the record. This is how libbpf's busy polling falls from
//    millions of records a second to 0.2 million as soon as the program submits without BPF_RB_NO_WAKEUP.
//    So the position that is given to the kernel lags behind what was read by one record. It then points at a record that is
//    done already; nobody will ever finish that one again, so the answer is always no. (Nor can a later lap land there: the
//    kernel keeps the positions less than one ring apart.) The lag is a whole record, not a few bytes, so that the position
//    stays a place where a record starts: whoever opens the map after a crash finds its footing, and sees one record twice at
//    worst.
//
// 3. Storing the position moves a cache line that the producer reads for every record. So it is stored once for many records:
//    when a call has read 16 of them or an eighth of the ring, when 32 calls in a row found nothing, and before sleeping.
//
// 4. Looking costs the producer too: the producer position and the next length are lines that it writes and the reader polls, and
//    each look takes one away from it. A reader that looks all the time finds one record at a time and makes each expensive. So
//    busy_poll() pauses, for a microsecond or two at most, and finds its own measure: longer while it finds fewer than 16 records
//    at a time, shorter when it finds more than 64. wait() pauses in the same way, up to about what a sleep costs, if records
//    came in a burst since the last time, and so doesn't sleep at all while they keep coming.
//    (Two CPUs, records of 8 bytes, default wake-ups, as far as the CPUs are apart: busy polling delivers 15 to 40 M/s with the
//    pause, 6 without, libbpf 0.1 to 3; wait() 11 to 16 M/s, libbpf 6 to 10.)
//
// The price is space that stays occupied although it was read. It is bounded: within a call and between calls an eighth of
// the ring; while idle one record. A record larger than an eighth is given back at once (the interrupt is cheap beside it),
// and after a million calls in vain the last one is given back too, so that a record as large as the whole ring fits again.
//
// The wake-up is taken edge-triggered. Level-triggered, an epoll would report a ring whose next record is still BUSY again
// and again, and the reader would spin through the system call until a producer on another CPU, perhaps preempted, is done;
// since that record will find the position at itself, its own wake-up can be relied on.
//
// What is in the ring is the kernel's, but the reader doesn't take it on trust: a length must fit between the positions, and
// the positions within one ring; else the ring is damaged, which wait() reports and consume() stops at.
#include "runtime/events/ring_buffer.h"

#include <optional>

#include <new>

#include <sys/mman.h>

#include "runtime/base/fail.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0 {

Result<RingBuffer> RingBuffer::open(int map_fd, size_t size) {
    const size_t page = sys::page_size();
    if (size < page || (size & (size - 1)) != 0 || size > SIZE_MAX / 4)
        return fail(Errc::invalid_argument, "ring buffer of {} bytes: the size must be a power of two and at least a page ({})",
                    size, page);
    std::optional<sys::Because> why;
    why.emplace("the page on which we tell the kernel how far we have read");
    sys::Mapping consumer =
        TRY_IN(sys::map(map_fd, 0, page, PROT_READ | PROT_WRITE, MAP_SHARED), "mapping the ring buffer's consumer page");
    why.reset(); // before the next one begins: they nest
    why.emplace("how far the kernel has written, and the records, mapped twice in a row so that none is cut at the end");
    sys::Mapping producer = TRY_IN(sys::map(map_fd, page, page + 2 * size, PROT_READ, MAP_SHARED),
                                   "mapping the ring buffer's producer page and data");
    return over(std::move(consumer), std::move(producer), size, map_fd);
}

Result<RingBuffer> RingBuffer::over(sys::Mapping consumer, sys::Mapping producer, size_t size, int wake_fd) {
    const size_t page = sys::page_size();
    if (size == 0 || (size & (size - 1)) != 0 || size > SIZE_MAX / 4)
        return fail(Errc::invalid_argument, "ring buffer of {} bytes: the size must be a power of two", size);
    if (consumer.size() < sizeof(size_t) || producer.size() < page + 2 * size)
        return fail(Errc::invalid_argument, "ring buffer of {} bytes: only {} are mapped", size, producer.size());
    RingBuffer ring;
    ring.data_ = producer.data() + page;
    ring.consumer_ = std::move(consumer);
    ring.producer_ = std::move(producer);
    ring.mask_ = size - 1;
    ring.batch_ = size / 8;
    ring.position_ = ring.last_ = ring.published_ = __atomic_load_n(ring.consumer_position(), __ATOMIC_ACQUIRE);
    ring.wake_fd_ = wake_fd;
    return ring;
}

RingBuffer &RingBuffer::operator=(RingBuffer &&other) noexcept {
    if (this != &other) {
        this->~RingBuffer();
        new (this) RingBuffer(std::move(other));
    }
    return *this;
}

void RingBuffer::release() noexcept {
    if (consumer_ && published_ != position_) publish(position_);
}

bool RingBuffer::readable() const {
    if (produced() == position_) return false;
    const std::byte *header = data_ + (position_ & mask_);
    return !(__atomic_load_n(reinterpret_cast<const uint32_t *>(header), __ATOMIC_ACQUIRE) & kBusy);
}

bool RingBuffer::prepare_wait() {
    if (damaged_ || readable()) return false;
    published_ = position_;
    __atomic_store_n(consumer_position(), position_, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); // arm64 may order a later acquire load before the store, SEQ_CST or not
    return !readable();
}

Result<bool> RingBuffer::wait(int timeout_ms) {
    if (damaged_)
        return fail(Errc::bad_input, "ring buffer: position {:#x}: a record or position that doesn't fit in {} bytes", position_,
                    size());
    // Where records come in bursts the next are a moment away. Waiting for them costs at most what sleeping and being woken
    // would; and the first pause is made even if one is there already, so that the burst is worth the next look.
    if (std::exchange(burst_, 0) >= kWorthPublishing && timeout_ms != 0) {
        for (uint32_t i = 0; i < kPausesOfASleep; ++i) {
            relax(kLongestPause);
            if (readable()) return true;
        }
    }
    if (!prepare_wait()) return true;
    return sleep(timeout_ms);
}

Result<bool> RingBuffer::sleep(int timeout_ms) {
    if (!epoll_) {
        Fd epoll = TRY(sys::epoll_create());
        TRY_IN(sys::epoll_add(epoll.get(), wake_fd_, EPOLLIN | EPOLLET, 0), "waiting for the ring buffer");
        epoll_ = std::move(epoll);
    }
    epoll_event event{};
    const size_t events = TRY_IN(sys::epoll_wait(epoll_.get(), {&event, 1}, timeout_ms), "waiting for the ring buffer");
    return events > 0;
}

} // namespace rawbpf::inline v0
