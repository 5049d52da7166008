// For how many threads the programs of waits keep stacks: profile --off-cpu, custom --off-cpu.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0 {

/// Twice as many as there are now, and 16,384 at least: of a command nobody knows how many it will have. But no more than a 64th
/// of the machine's memory has room for, at 2.8 KB each.
[[nodiscard]] uint32_t waiting_threads();

} // namespace rawbpf::inline v0
