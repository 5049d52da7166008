// A ring has to be as large as what comes while nobody looks. Formatting an event takes ten times as long as the program that
// sends it, and a pipe may not be read for seconds: no ring is large enough for that, and its memory can't be swapped or given
// back. So records leave it at memory speed, and wait where memory is plenty.
//
//      1,000,000 records of 128 bytes a second fill 8 MiB in 65 ms; moving them takes 40 ns each, a twentieth of a CPU
//        500,000 of 1.7 KB, which have stacks, in 10 ms
//
// With one thread (static builds, and where system calls are watched) the caller moves records between any two chunks that it
// handles, every half millisecond or so; what it must not do is wait for long. With two, a tick comes when a quarter of the ring
// could have been filled at 1 GB/s, or three quarters where the last one found little.
//
// The thread leaves the ring alone while the caller sleeps: then the kernel wakes the caller with the next record, and each
// wake-up of a second thread would be one too many. It comes all the same when the ring fills up, for the caller may have been
// woken and still wait for its turn, which beside some thousand threads comes after seconds. After some ticks of that it rests
// until read() wakes it, but for no more than 10 ms: a hundred looks a second are next to nothing. (The kernel asks the ring
// again whether it is readable before it lets an epoll_wait() return. One that was emptied just then makes the caller sleep on;
// whoever uses this has a tick of its own, as all the commands do.)
#include "runtime/events/ring_reader.h"

#include <algorithm>
#include <utility>

namespace rawbpf::inline v0 {
namespace {

constexpr size_t kAtOnce = 2048;    // records moved without letting go of the lock
constexpr uint64_t kFastest = 1000; // bytes a microsecond that a ring is filled with
constexpr uint64_t kLeastTickNs = 250'000, kMostTickNs = 3'000'000;
constexpr uint32_t kQuietTicks = 16; // then the thread rests

} // namespace

RingReader::RingReader(std::vector<RingBuffer> rings, uint64_t backlog, Refused refused, Needed needed)
    : refused_(std::move(refused)), needed_(std::move(needed)) {
    bound_.beyond = needed_ ? kNeededBytes : 0;
    bound_.most = std::max<uint64_t>(backlog, 2 * Backlog::kChunkBytes * rings.size());
    lanes_.reserve(rings.size());
    size_t least = SIZE_MAX;
    for (RingBuffer &ring : rings) {
        least = std::min(least, ring.size());
        lanes_.push_back({std::move(ring), Backlog(bound_), {}});
    }
    tick_ns_ = std::clamp<uint64_t>(least / 4 * 1000 / kFastest, kLeastTickNs, kMostTickNs);
}

RingReader::~RingReader() { ticker_.reset(); }

void RingReader::keep_up() {
    if (!ticker_) ticker_ = sys::Ticker::start([this] { return tick(); }, sys::Ticker::Turn::first);
}

void RingReader::stop() {
    ticker_.reset();
    move_all();
}

size_t RingReader::move_some(Lane &lane) {
    return lane.ring.consume(
        [&](Bytes record) {
            if (lane.backlog.push(record)) return;
            if (needed_ && needed_(record) && lane.backlog.push_needed(record)) return;
            if (refused_) refused_(record);
        },
        kAtOnce);
}

void RingReader::move_all() {
    for (Lane &lane : lanes_) {
        // At most what the ring holds now: a producer that is as fast as this thread, which may have half a CPU for records of 8
        // KB, would keep us here.
        size_t from = 0, most = 0;
        {
            sys::Locked here(lock_);
            from = lane.ring.consumed(), most = lane.ring.available();
        }
        for (bool more = most > 0; more;) {
            sys::Locked here(lock_);
            more = move_some(lane) == kAtOnce && lane.ring.consumed() - from < most;
        }
    }
}

uint64_t RingReader::tick() {
    if (sleeps_) {
        bool fills = false;
        {
            sys::Locked here(lock_);
            for (const Lane &lane : lanes_) fills |= lane.ring.available() > lane.ring.size() / 4;
        }
        if (!fills) return ++quiet_ > kQuietTicks ? 0 : tick_ns_;
    }
    bool little = true;
    {
        sys::Locked here(lock_);
        for (const Lane &lane : lanes_) little &= lane.ring.available() < lane.ring.size() / 64;
    }
    quiet_ = 0;
    move_all();
    return little ? 3 * tick_ns_ : tick_ns_;
}

bool RingReader::refill(Lane &lane) {
    sleeps_ = false;
    move_all();
    {
        sys::Locked here(lock_);
        lane.backlog.give_back(std::exchange(lane.reading, {}));
        lane.reading = lane.backlog.take();
    }
    if (lane.reading.left() == 0) return false;
    if (ticker_) ticker_->wake();
    return true;
}

bool RingReader::peek(Bytes &record, size_t ring) const {
    const Lane &lane = lanes_[ring];
    if (lane.reading.peek(record)) return true;
    sys::Locked here(lock_); // at the end of a chunk the next record is the first one of the next
    return lane.backlog.peek(record);
}

uint64_t RingReader::waiting() const {
    sys::Locked here(lock_);
    uint64_t sum = 0;
    for (const Lane &lane : lanes_) sum += lane.backlog.waiting() + lane.reading.left();
    return sum;
}

uint64_t RingReader::refused() const {
    sys::Locked here(lock_);
    uint64_t sum = 0;
    for (const Lane &lane : lanes_) sum += lane.backlog.refused();
    return sum;
}

bool RingReader::may_sleep() {
    sys::Locked here(lock_);
    bool may = true;
    for (Lane &lane : lanes_) may &= lane.backlog.waiting() + lane.reading.left() == 0;
    if (!may) return false;
    for (Lane &lane : lanes_) may &= lane.ring.prepare_wait();
    sleeps_ = may;
    return may;
}

size_t RingReader::ring_bytes() const {
    size_t sum = 0;
    for (const Lane &lane : lanes_) sum += lane.ring.size();
    return sum;
}

} // namespace rawbpf::inline v0
