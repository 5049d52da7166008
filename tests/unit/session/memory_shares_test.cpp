#include "programs/capture/memory_shares.h"

#include "tests/support/test.h"

using namespace rawbpf;

namespace {
constexpr uint64_t kMiB = 1 << 20;
} // namespace

TEST_CASE("memory shares: what a run takes by itself is a small part of a board's memory, and bounded on a large machine") {
    const MemoryShares board = memory_shares(60 * kMiB), small = memory_shares(512 * kMiB),
                       large = memory_shares(uint64_t{64} << 30);
    CHECK(board.events_ring == kMiB);
    CHECK(board.samples_ring == 2 * kMiB);
    CHECK(board.unwind_tables == 3 * kMiB);
    CHECK(board.most_asked == 15 * kMiB);
    CHECK(small.events_ring == 8 * kMiB);
    CHECK(small.unwind_tables == 32 * kMiB);
    CHECK(large.events_ring == 8 * kMiB);
    CHECK(large.samples_ring == 64 * kMiB);
    CHECK(large.unwind_tables == 64 * kMiB);
    // All at once, even the backlog that is full, leave two thirds.
    for (uint64_t memory = 32 * kMiB; memory <= uint64_t{1} << 40; memory += memory / 3) {
        const MemoryShares s = memory_shares(memory);
        CHECK(s.events_ring + s.samples_ring + s.unwind_tables + s.backlog < memory / 3);
        CHECK((s.events_ring & (s.events_ring - 1)) == 0);
        CHECK((s.samples_ring & (s.samples_ring - 1)) == 0);
        CHECK(s.unwind_tables >= 2 * kMiB);
        CHECK(s.unwind_tables % kMiB == 0);
    }
}
