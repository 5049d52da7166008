// Records of several rings, in the order of time.
#include "programs/session/merged_rings.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/sys/file.h"
#include "tests/support/fake_ring.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::session;
using rawbpf::test::FakeRing;

namespace {

struct Merged {
    FakeRing a{sys::page_size()}, b{sys::page_size()};
    RingReader reader{rings(), 1 << 20, [](Bytes) { FAIL("refused"); }};
    MergedRings merged{reader};

    std::vector<RingBuffer> rings() {
        std::vector<RingBuffer> out;
        out.push_back(a.reader());
        out.push_back(b.reader());
        return out;
    }
    static void put(FakeRing &ring, uint64_t t_ns) {
        REQUIRE(ring.put(std::string(reinterpret_cast<const char *>(&t_ns), sizeof t_ns)));
    }
    std::vector<uint64_t> read(size_t limit = SIZE_MAX) {
        std::vector<uint64_t> out;
        merged.read([&](Bytes record) { out.push_back(record.size() < 8 ? 0 : load<uint64_t>(record.data())); }, limit);
        return out;
    }
};

} // namespace

TEST_CASE("merged rings: records come in the order of time, whichever ring they are in") {
    Merged m;
    for (uint64_t t : {10, 30, 40}) Merged::put(m.a, t);
    for (uint64_t t : {5, 20, 50}) Merged::put(m.b, t);
    CHECK(m.read() == std::vector<uint64_t>{5, 10, 20, 30, 40, 50});
    CHECK(m.read().empty());
    CHECK(m.merged.oldest_ns() == 0);
}

TEST_CASE("merged rings: what a limit leaves is read the next time, at its place") {
    Merged m;
    for (uint64_t t : {10, 40}) Merged::put(m.a, t);
    for (uint64_t t : {20, 30}) Merged::put(m.b, t);
    CHECK(m.read(1) == std::vector<uint64_t>{10});
    CHECK(m.merged.oldest_ns() == 20); // fetched already, or still in its ring
    Merged::put(m.b, 35);
    CHECK(m.read() == std::vector<uint64_t>{20, 30, 35, 40});
}

TEST_CASE("merged rings: a record too short to have a time comes first") {
    Merged m;
    Merged::put(m.a, 10);
    REQUIRE(m.b.put("abc"));
    CHECK(m.read() == std::vector<uint64_t>{0, 10});
}

TEST_CASE("merged rings: what waits can be left out, and is counted") {
    Merged m;
    for (uint64_t t : {10, 40}) Merged::put(m.a, t);
    for (uint64_t t : {20, 30}) Merged::put(m.b, t);
    CHECK(m.read(1).size() == 1);
    CHECK(m.merged.leave_out() == 3);
    CHECK(m.read().empty());
}
