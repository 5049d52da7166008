// What is sampled: the ticks of a clock, or each N-th of something that happens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::profile {

enum class EventKind : uint8_t {
    clock,      ///< the kernel's cpu clock: so many ticks a second
    cycles,     ///< the CPU's cycle counter: so many ticks a second, or each N-th cycle
    software,   ///< counted by the kernel: each N-th
    tracepoint, ///< each N-th hit, counted by our program
};

struct Event {
    std::string name = "cpu-clock"; ///< "page-faults", "sched:sched_switch": as perf calls it
    EventKind kind = EventKind::clock;
    uint32_t config = 0; ///< software: PERF_COUNT_SW_...
    /// Whether it has no rate of its own, so that only counting makes sense.
    [[nodiscard]] bool counts() const { return kind == EventKind::software || kind == EventKind::tracepoint; }
    /// "sched/sched_switch", as tracefs has it; of a tracepoint only.
    [[nodiscard]] std::string tracepoint() const;
};

/// "cpu-clock", "cycles", "page-faults" ..., "tracepoint:CATEGORY:NAME", or shorter "CATEGORY:NAME". Whether this kernel has such
/// a tracepoint isn't asked. Errors: invalid_argument with the names that there are, and the nearest as a hint.
[[nodiscard]] Result<Event> parse_event(std::string_view text);

} // namespace rawbpf::inline v0::profile
