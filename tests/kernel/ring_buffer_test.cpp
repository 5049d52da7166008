// The ring buffer's reader on the running kernel's rings.
#include "runtime/events/ring_buffer.h"

#include <thread>
#include <vector>

#include "tests/support/ring_producer.h"
#include "tests/support/test.h"

using namespace rawbpf;
using rawbpf::test::make_producer;
using rawbpf::test::make_ring;
using rawbpf::test::produce;

namespace {

constexpr uint32_t kSize = 64 << 10;

} // namespace

#define RING_OR_SKIP(name)                                                                                                       \
    auto name##_fd = make_ring(kSize);                                                                                           \
    if (!name##_fd) SKIP("needs ring buffers, 5.8: " + name##_fd.error().message());                                             \
    auto name##_result = RingBuffer::open(name##_fd->get(), kSize);                                                              \
    REQUIRE_MESSAGE(name##_result, name##_result.error().message());                                                             \
    RingBuffer &name = *name##_result

TEST_CASE("ring buffer: what a program submits is what is read, through many laps") {
    RING_OR_SKIP(ring);
    auto program = make_producer(ring_fd->get(), 100, 0);
    REQUIRE_MESSAGE(program, program.error().message());
    for (int lap = 0; lap < 100; ++lap) {
        for (int i = 0; i < 7; ++i) REQUIRE(produce(program->get()).value_or(0) == 100);
        CHECK(ring.available() == 700 * 16);
        uint64_t expected = 100;
        bool right = true;
        CHECK(ring.consume([&](Bytes record) {
            right &= record.size() == 8 && load<uint64_t>(record.data()) == expected;
            expected = expected > 1 ? expected - 1 : 100;
        }) == 700);
        CHECK(right);
    }
    CHECK(!ring.damaged());
}

TEST_CASE("ring buffer: a full ring takes no more, and takes again what was read") {
    RING_OR_SKIP(ring);
    auto program = make_producer(ring_fd->get(), 100, 0);
    REQUIRE(program);
    uint64_t room = 0, n = 0;
    while ((n = produce(program->get()).value_or(0)) > 0) room += n;
    CHECK(room == kSize / 16 - 1); // one record always stays free, or full would look like empty
    CHECK(ring.consume([](Bytes) {}) == room);
    CHECK(produce(program->get()).value_or(0) == 100);
}

TEST_CASE("ring buffer: discarded records are counted") {
    RING_OR_SKIP(ring);
    auto program = make_producer(ring_fd->get(), 10, 0, true);
    REQUIRE(program);
    REQUIRE(produce(program->get()).value_or(0) == 10);
    CHECK(ring.consume([](Bytes) { FAIL("shown"); }) == 10);
    CHECK(ring.discarded() == 10);
}

TEST_CASE("ring buffer: the kernel's wake-ups are never lost, asleep or polling before") {
    RING_OR_SKIP(ring);
    auto one = make_producer(ring_fd->get(), 1, 0), many = make_producer(ring_fd->get(), 100, 0);
    auto last = make_producer(ring_fd->get(), 1, 0, true); // a discarded record marks the end
    REQUIRE(one);
    REQUIRE(many);
    REQUIRE(last);
    uint64_t produced = 0;
    std::thread producer([&] {
        for (int i = 0; i < 20000; ++i) {
            produced += produce(i % 7 ? one->get() : many->get()).value_or(0);
            if (i % 50 == 0) std::this_thread::yield();
        }
        while (produce(last->get()).value_or(0) == 0) std::this_thread::yield();
    });
    uint64_t consumed = 0;
    bool silent = false;
    for (int i = 0; ring.discarded() == 0 && !silent; ++i) {
        i % 3 ? ring.consume([&](Bytes) { ++consumed; }) : ring.busy_poll([&](Bytes) { ++consumed; }, 10);
        if (ring.discarded() == 0) silent = !ring.wait(10000).value_or(false); // ten seconds of silence: a lost wake-up
    }
    if (silent) ring.consume([&](Bytes) { ++consumed; });
    producer.join();
    CHECK(!silent);
    CHECK(consumed == produced);
}

TEST_CASE("ring buffer: a second reader starts where the first one ended") {
    RING_OR_SKIP(ring);
    auto program = make_producer(ring_fd->get(), 5, 0);
    REQUIRE(program);
    REQUIRE(produce(program->get()).value_or(0) == 5);
    CHECK(ring.consume([](Bytes) {}, 3) == 3);
    ring = RingBuffer::open(ring_fd->get(), kSize).value(); // assigned after opening, so this one may see the third again
    ring = RingBuffer::open(ring_fd->get(), kSize).value();
    std::vector<uint64_t> rest;
    ring.consume([&](Bytes record) { rest.push_back(load<uint64_t>(record.data())); });
    CHECK(rest.size() >= 2);
    CHECK(rest.back() == 1);
}

TEST_CASE("ring buffer: a map of another kind or size is refused by the kernel, with what was tried") {
    sys::MapCreateAttr attr;
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = 4, attr.value_size = 8, attr.max_entries = 1;
    auto array = sys::map_create(attr);
    if (!array) SKIP("needs bpf(2): " + array.error().message());
    auto ring = RingBuffer::open(array->get(), kSize);
    REQUIRE(!ring);
    CHECK(ring.error().context.find("consumer page") != std::string::npos);
}
