// How much of a machine's memory the parts of a run take where nobody says how much: what suits on a machine with plenty of it, a
// share on a board. Rings and tables are the kernel's memory, which can't be swapped out.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0 {

/// In bytes.
struct MemoryShares {
    uint64_t memory;        ///< what there is: sys::memory_bytes()
    uint64_t events_ring;   ///< of trace and custom: a 64th, 1 to 8 MiB, a power of two
    uint64_t samples_ring;  ///< of profile, at most; by CPUs and frequency it is less: a 16th, 1 to 64 MiB, a power of two
    uint64_t unwind_tables; ///< at most: a 16th, 2 to 64 MiB
    uint64_t backlog;       ///< what waits to be printed, at most: an eighth
    uint64_t most_asked;    ///< the most that a user may ask for a ring or for tables: a quarter, 1 MiB at least
};

/// PURE.
[[nodiscard]] MemoryShares memory_shares(uint64_t memory);
/// Of this process.
[[nodiscard]] MemoryShares memory_shares();

} // namespace rawbpf::inline v0
