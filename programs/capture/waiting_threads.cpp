// A thread that waits takes a slot of a map with its stacks, some 2 KB of frames, and the map has room for a number that is fixed
// when it is made. 16,384 are 40 MB, which the smallest machines can't spare: there a 64th of the memory bounds it, down to the
// 11 MB of 4,096 threads.
#include "programs/capture/waiting_threads.h"

#include <algorithm>

#include "runtime/sys/machine.h"
#include "runtime/sys/runnable.h"

namespace rawbpf::inline v0 {

namespace {
constexpr uint64_t kShare = 64, kLeast = 4096 * kWaitingBytes, kUsual = 16384, kMost = 1 << 18;
} // namespace

uint32_t waiting_threads(uint64_t bytes) {
    const uint64_t least = kLeast / bytes, room = std::clamp(sys::memory_bytes() / kShare / bytes, least, kMost);
    return static_cast<uint32_t>(std::clamp(std::max<uint64_t>(kUsual, 2 * sys::threads_of_machine()), least, room));
}

} // namespace rawbpf::inline v0
