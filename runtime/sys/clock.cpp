// Clocks; see clock.h.
#include "runtime/sys/clock.h"

#include <ctime>

namespace rawbpf::inline v0::sys {
namespace {
uint64_t clock_ns(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
} // namespace

uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
uint64_t boottime_ns() { return clock_ns(CLOCK_BOOTTIME); }
uint64_t realtime_ns() { return clock_ns(CLOCK_REALTIME); }
uint64_t process_cpu_ns() { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }
uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

int64_t realtime_offset_ns() {
    // An interruption between the readings shows as a wide gap: the narrowest of a few wins.
    uint64_t narrowest = ~0ULL;
    int64_t offset = 0;
    for (int i = 0; i < 5; ++i) {
        uint64_t before = monotonic_ns(), real = realtime_ns(), after = monotonic_ns();
        if (after - before >= narrowest) continue;
        narrowest = after - before;
        offset = static_cast<int64_t>(real) - static_cast<int64_t>(before + narrowest / 2);
    }
    return offset;
}

} // namespace rawbpf::inline v0::sys
