// A thread that ticks.
#include "runtime/sys/ticker.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("ticker: one that goes first looks again though nobody wakes it") {
    std::atomic<int> ticks{0};
    const auto count = [&]() -> uint64_t {
        ++ticks;
        return 0;
    };
    const auto ticker = sys::Ticker::start(count, sys::Ticker::Turn::first);
    if (!ticker) return; // a build of one thread
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (ticks < 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    CHECK(ticks >= 3);
}
