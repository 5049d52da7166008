// The ring buffer's reader against a ring in plain memory (tests/support/fake_ring.h).
#include "runtime/events/ring_buffer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <sys/syscall.h>

#include "runtime/sys/invoke.h"
#include "runtime/sys/narrow_call.h"
#include "tests/support/fake_ring.h"
#include "tests/support/test.h"

using namespace rawbpf;
using rawbpf::test::FakeRing;

namespace {

std::vector<std::string> drain(RingBuffer &ring, size_t limit = SIZE_MAX) {
    std::vector<std::string> out;
    ring.consume([&](Bytes record) { out.emplace_back(reinterpret_cast<const char *>(record.data()), record.size()); }, limit);
    return out;
}

const size_t kPage = sys::page_size();

} // namespace

TEST_CASE("ring buffer: records come out whole and in order, empty ones and odd lengths too") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    CHECK(drain(ring).empty());
    for (std::string_view text : {"one", "", "exactly8", "and a longer one"}) REQUIRE(fake.put(text));
    CHECK(ring.available() == 16 + 8 + 16 + 24);
    CHECK(drain(ring) == std::vector<std::string>{"one", "", "exactly8", "and a longer one"});
    CHECK(ring.available() == 0);
}

TEST_CASE("ring buffer: a record that wraps is contiguous, over many laps") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    uint64_t written = 0, wrapped = 0;
    for (int round = 0; round < 5000; ++round) {
        std::string text(1 + (round * 37) % 300, static_cast<char>('a' + round % 26));
        const size_t before = fake.producer();
        while (!fake.put(text)) FAIL("full although everything was read");
        wrapped += (before & (kPage - 1)) + text.size() + 8 > kPage;
        ++written;
        auto got = drain(ring);
        REQUIRE(got.size() == 1);
        REQUIRE(got[0] == text);
    }
    CHECK(written == 5000);
    CHECK(wrapped > 100);
}

TEST_CASE("ring buffer: reading stops at a record that is being written, and goes on when it is done") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    fake.put("first");
    size_t busy = 0;
    REQUIRE(fake.reserve(4, busy));
    fake.put("third");
    CHECK(drain(ring) == std::vector<std::string>{"first"});
    CHECK(drain(ring).empty());
    std::memcpy(fake.at(busy) + 8, "2222", 4);
    fake.commit(busy);
    CHECK(drain(ring) == std::vector<std::string>{"2222", "third"});
}

TEST_CASE("ring buffer: discarded records are counted, not shown") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    size_t position = 0;
    fake.put("a");
    REQUIRE(fake.reserve(100, position));
    fake.commit(position, true);
    fake.put("b");
    std::string shown;
    CHECK(ring.consume([&](Bytes record) { shown += static_cast<char>(record[0]); }) == 3);
    CHECK(shown == "ab");
    CHECK(ring.discarded() == 1);
}

TEST_CASE("ring buffer: the limit, and a handler that says stop") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    for (char c : std::string("abcdef")) fake.put(std::string(1, c));
    CHECK(drain(ring, 0).empty());
    CHECK(drain(ring, 2) == std::vector<std::string>{"a", "b"});
    std::string seen;
    CHECK(ring.consume([&](Bytes record) {
        seen += static_cast<char>(record[0]);
        return seen.size() < 3;
    }) == 3);
    CHECK(seen == "cde");
    CHECK(drain(ring) == std::vector<std::string>{"f"});
}

TEST_CASE("ring buffer: what arrives during a call is left for the next one") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    fake.put("a");
    CHECK(ring.consume([&](Bytes) { fake.put("again"); }) == 1);
    CHECK(ring.consume([&](Bytes) { fake.put("again"); }) == 1);
}

TEST_CASE("ring buffer: a length that goes past what was produced is an error, not a read") {
    for (uint32_t length : {9u, 4096u, 0x3fffffffu, 0x3ffffff8u}) {
        FakeRing fake(kPage);
        RingBuffer ring = fake.reader();
        fake.put("good");
        size_t position = 0;
        REQUIRE(fake.reserve(8, position));
        std::memcpy(fake.at(position), &length, sizeof length);
        CHECK(drain(ring) == std::vector<std::string>{"good"});
        CHECK(ring.damaged());
        CHECK(drain(ring).empty());
        auto waited = ring.wait(0);
        REQUIRE(!waited);
        CHECK(waited.error().kind == Errc::bad_input);
    }
}

TEST_CASE("ring buffer: positions that can't be are an error") {
    for (size_t produced : {kPage + 1, SIZE_MAX, SIZE_MAX / 2 + 1}) {
        FakeRing fake(kPage);
        RingBuffer ring = fake.reader();
        fake.producer() = produced;
        CHECK(drain(ring).empty());
        CHECK(ring.damaged());
    }
}

TEST_CASE("ring buffer: random bytes in the ring never lead outside it") {
    uint64_t state = 88172645463325252u;
    auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; };
    for (int round = 0; round < 300; ++round) {
        FakeRing fake(kPage);
        fake.consumer() = fake.producer() = random() & ~uint64_t{7};
        RingBuffer ring = fake.reader();
        for (size_t at = 0; at < kPage; at += 8) {
            // Small lengths mostly, so that some records are walked before the nonsense.
            const uint64_t word = random() % 4 ? random() % 64 : random();
            std::memcpy(fake.at(at), &word, sizeof word);
        }
        fake.producer() += random() % (kPage + 1);
        uint64_t sum = 0; // reads every byte, for the sanitizers and the page protection to see
        ring.consume([&](Bytes record) {
            CHECK(record.size() <= kPage);
            for (std::byte b : record) sum += static_cast<uint8_t>(b);
        });
        CHECK(sum < uint64_t{1} << 30);
    }
}

TEST_CASE("ring buffer: a busy poller that keeps up causes no wake-ups") {
    FakeRing fake(16 * kPage);
    RingBuffer ring = fake.reader();
    fake.put("x"); // the reader stands at the first record: the one wake-up that there has to be
    CHECK(fake.wakeups == 1);
    for (int i = 0; i < 100000; ++i) {
        REQUIRE(drain(ring).size() == 1);
        for (int idle = 0; idle < i % 50; ++idle) REQUIRE(drain(ring).empty());
        REQUIRE(fake.put("x"));
    }
    CHECK(fake.wakeups == 1);
}

TEST_CASE("ring buffer: busy polling delivers the same, across threads, and hardly ever wakes") {
    FakeRing fake(16 * kPage);
    RingBuffer ring = fake.reader();
    constexpr uint64_t kRecords = 300000;
    std::thread producer([&] {
        for (uint64_t i = 0; i < kRecords;) {
            if (fake.put({reinterpret_cast<const char *>(&i), sizeof i})) ++i;
            if (i % 1000 == 0) std::this_thread::yield();
        }
    });
    uint64_t next = 0;
    bool in_order = true;
    while (next < kRecords) ring.busy_poll([&](Bytes record) { in_order &= load<uint64_t>(record.data()) == next++; }, 1000);
    producer.join();
    CHECK(in_order);
    CHECK(next == kRecords);
    // The first record finds the reader at the start; after a million looks in vain one may again: a producer that lost its CPU,
    // which on a machine with much else to do happens every few thousand records.
    CHECK(fake.wakeups < kRecords / 100);
}

TEST_CASE("ring buffer: space that was read is given back in time") {
    const size_t size = 16 * kPage;
    FakeRing fake(size);
    RingBuffer ring = fake.reader();
    SUBCASE("many small ones: an eighth of the ring is held at most") {
        for (int i = 0; i < 20000; ++i) {
            REQUIRE(fake.put("12345678"));
            REQUIRE(drain(ring).size() == 1);
            REQUIRE(fake.producer() - fake.consumer() <= size / 8 + 16);
        }
    }
    SUBCASE("within one long call, too") {
        while (fake.put("12345678")) {
        }
        size_t most = 0, read = 0;
        ring.consume([&](Bytes) { most = std::max(most, read - fake.consumer()), read += 16; });
        CHECK(most <= size / 8 + 16);
        CHECK(fake.consumer() == read - 16);
    }
    SUBCASE("idle: one record at most") {
        for (int i = 0; i < 5; ++i) fake.put("12345678");
        drain(ring);
        CHECK(fake.consumer() == 0);
        for (int i = 0; i < 32; ++i) drain(ring);
        CHECK(fake.producer() - fake.consumer() == 16);
    }
    SUBCASE("large ones: at once") {
        const std::string large(size / 2, 'x');
        for (int i = 0; i < 10; ++i) {
            REQUIRE(fake.put(large));
            REQUIRE(drain(ring).size() == 1);
        }
    }
    SUBCASE("one as large as the ring fits after idling") {
        fake.put("small");
        drain(ring);
        const std::string whole(size - 16, 'x');
        CHECK(!fake.put(whole));
        for (int i = 0; i < 1 << 20; ++i) ring.consume([](Bytes) {});
        CHECK(fake.put(whole));
        CHECK(drain(ring).size() == 1);
    }
    SUBCASE("dropping the reader gives back everything, and a next one sees nothing twice") {
        for (int i = 0; i < 3; ++i) fake.put("abc");
        CHECK(drain(ring, 2).size() == 2);
        RingBuffer moved = std::move(ring);
        CHECK(fake.consumer() == 0);
        moved = fake.reader();
        CHECK(fake.consumer() == 32);
        moved = fake.reader();
        CHECK(drain(moved) == std::vector<std::string>{"abc"});
    }
}

TEST_CASE("ring buffer: wait tells a record from a time-out, and gives the position back first") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    auto idle = ring.wait(0);
    REQUIRE(idle);
    CHECK(!*idle);
    fake.put("a");
    CHECK(*ring.wait(-1));
    drain(ring);
    CHECK(fake.consumer() == 0);
    while (*ring.wait(0)) {
    } // the wake-up of "a" may still be pending
    CHECK(fake.consumer() == fake.producer());
    size_t busy = 0;
    REQUIRE(fake.reserve(8, busy));
    CHECK(!*ring.wait(0));
    CHECK(ring.prepare_wait());
    CHECK(fake.commit(busy)); // wakes
    CHECK(!ring.prepare_wait());
    CHECK(*ring.wait(-1));
    CHECK(drain(ring).size() == 1);
}

TEST_CASE("ring buffer: no wake-up is lost between threads") {
    FakeRing fake(kPage);
    RingBuffer ring = fake.reader();
    constexpr uint64_t kRecords = 100000;
    std::thread producer([&] {
        for (uint64_t i = 0; i < kRecords;) {
            i += fake.put({reinterpret_cast<const char *>(&i), sizeof i});
            if (i % 64 == 0) std::this_thread::yield();
        }
    });
    uint64_t next = 0, timeouts = 0;
    bool in_order = true;
    while (next < kRecords && timeouts == 0) {
        ring.consume([&](Bytes record) { in_order &= load<uint64_t>(record.data()) == next++; });
        if (next < kRecords) timeouts += !*ring.wait(10000); // a lost wake-up shows as ten seconds of silence
    }
    if (timeouts) ring.consume([&](Bytes) { ++next; });
    producer.join();
    CHECK(timeouts == 0);
    CHECK(next == kRecords);
    CHECK(in_order);
}

namespace {

/// Fails the n-th call; keeps count of what is open and mapped.
class FailNth final : public sys::Backend {
  public:
    FailNth(int n, int memory) : n_(n), memory_(memory) {}
    long call(const sys::Call &call) override {
        if (call.number == __NR_munmap) --mapped;
        if (call.number == __NR_close) --opened;
        if (call.number != __NR_munmap && call.number != __NR_close && n_-- == 0) return -ENOMEM;
        sys::Call real = call;
        if (call.number == __NR_mmap) real.args[4] = static_cast<uint64_t>(memory_);
        const long result = sys::kernel_backend().call(real);
        if (call.number == __NR_mmap) ++mapped;
        if (call.number == __NR_epoll_create1) ++opened;
        return result;
    }
    int mapped = 0, opened = 0;

  private:
    int n_, memory_;
};

} // namespace

TEST_CASE("ring buffer: whichever call fails, nothing leaks") {
    const int memory = memfd_create("ring", MFD_CLOEXEC);
    REQUIRE(ftruncate(memory, static_cast<off_t>(2 * kPage + 2 * kPage)) == 0);
    const int wake = eventfd(0, EFD_CLOEXEC);
    int failed = 0;
    for (int n = 0; n < 6; ++n) {
        FailNth backend(n, memory);
        sys::Backend *before = sys::use_backend(&backend);
        {
            auto ring = RingBuffer::open(wake, kPage);
            auto waited = ring ? ring->wait(0) : Result<bool>(Unexpected(ring.error()));
            failed += !waited;
            if (!waited) CHECK(waited.error().os == ENOMEM);
        }
        sys::use_backend(before);
        CHECK(backend.mapped == 0);
        CHECK(backend.opened == 0);
    }
    CHECK(failed == 5); // two mappings, epoll_create1, epoll_ctl, epoll_pwait
    close(memory);
    close(wake);
}

TEST_CASE("ring buffer: impossible sizes are refused before any call") {
    for (size_t size : {size_t{0}, size_t{1}, kPage / 2, 3 * kPage, SIZE_MAX, SIZE_MAX / 2 + 1}) {
        auto ring = RingBuffer::open(-1, size);
        REQUIRE(!ring);
        CHECK(ring.error().kind == Errc::invalid_argument);
    }
    auto no_map = RingBuffer::open(-1, kPage);
    REQUIRE(!no_map);
    CHECK(no_map.error().os == EBADF);
}
