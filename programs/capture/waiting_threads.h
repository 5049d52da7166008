// For how many threads the programs of waits keep stacks: profile --off-cpu, custom --off-cpu.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0 {

inline constexpr uint64_t kWaitingBytes = 2800;                ///< of a thread: what the walk keeps, and its stacks
inline constexpr uint64_t kWaitingLanguageBytes = 2048 + 2800; ///< the same with an interpreter's frames
inline constexpr uint64_t kWaitingLabelBytes = 648;            ///< and with labels more

/// Twice as many as there are now, and 16,384 at least: of a command nobody knows how many it will have. But no more than a 64th
/// of the machine's memory has room for, or 11 MB, at `bytes` each.
[[nodiscard]] uint32_t waiting_threads(uint64_t bytes = kWaitingBytes);

} // namespace rawbpf::inline v0
