//      memory       ring of trace   ring of profile   unwind tables   backlog   asked for
//      64 MiB       1 MiB           up to 4 MiB       up to 4 MiB     8 MiB     up to 16 MiB
//      512 MiB      8 MiB           up to 32 MiB      up to 32 MiB    64 MiB    up to 128 MiB
//      16 GiB       8 MiB           up to 64 MiB      up to 64 MiB    2 GiB     up to 4 GiB
#include "programs/capture/memory_shares.h"

#include <algorithm>
#include <bit>

#include "runtime/sys/machine.h"

namespace rawbpf::inline v0 {
namespace {

constexpr uint64_t kMiB = 1 << 20;

} // namespace

MemoryShares memory_shares(uint64_t memory) {
    MemoryShares out{};
    out.memory = memory;
    out.events_ring = std::clamp(std::bit_floor(memory / 64), kMiB, 8 * kMiB);
    out.samples_ring = std::clamp(std::bit_floor(memory / 16), kMiB, 64 * kMiB);
    out.unwind_tables = std::clamp(memory / 16 / kMiB * kMiB, 2 * kMiB, 64 * kMiB);
    out.backlog = memory / 8;
    out.most_asked = std::max(memory / 4, kMiB);
    return out;
}

MemoryShares memory_shares() { return memory_shares(sys::memory_bytes()); }

} // namespace rawbpf::inline v0
