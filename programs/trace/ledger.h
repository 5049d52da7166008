// The ledger of a trace: what became of each time that a place was passed.
//
//      fired = shown + filtered + sampled_out + lost      lost, by reason: there was no room for the event's record, or its group;
//                                                         somebody didn't want to wait for the rest; it came after the last one
//                                                         that was wanted
//      degraded                                           of those shown: what couldn't be read, calls without a return and
//                                                         returns without a call, by reason (README.md: Calls and returns)
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "programs/render/frame.h"
#include "programs/trace/calls.h"
#include "programs/trace/tracer.h"
#include "programs/trace/view.h"

namespace rawbpf::inline v0::trace {

/// Calls that haven't returned when the trace ends.
struct OpenCalls {
    uint64_t go_on = 0;
    uint64_t ended = 0; ///< their thread is no more
};
/// `alive`: whether a thread, or the process of a goroutine, is there still.
[[nodiscard]] OpenCalls open_calls(const Calls &calls, const std::function<bool(uint32_t)> &alive);
/// Of this machine: to be asked before the command is ended, with which its threads would end.
[[nodiscard]] OpenCalls open_calls(const Calls &calls);

/// What became of all firings.
struct Spent {
    std::vector<PlaceCounts> counts;
    uint64_t malformed = 0;            ///< records that couldn't be read
    bool groups = false;               ///< what had no room was a group, not a record
    std::optional<uint64_t> most = {}; ///< so many events were shown, where no more than a number were wanted
};
/// After the tracer's finish().
[[nodiscard]] Spent spent_of(const Tracer &tracer, std::vector<PlaceCounts> counts, std::optional<uint64_t> most);
/// What adds up. `unknown_stack`: those whose stack is lost.
[[nodiscard]] Ledger sums_of(const Spent &spent, uint64_t unknown_stack = 0);
/// All of it, after the view's drain().
[[nodiscard]] Ledger ledger_of(const Spent &spent, const View &view, const OpenCalls &open);

} // namespace rawbpf::inline v0::trace
