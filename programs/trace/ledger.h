// The ledger of a trace: what became of each time that a place was passed.
//
//      fired = shown + filtered + sampled_out + lost      lost, by reason: there was no room for the event's record, or its group;
//                                                         somebody didn't want to wait for the rest; it came after the last one
//                                                         that was wanted
//      degraded                                           of those shown: what couldn't be read, calls without a return and
//                                                         returns without a call, by reason (README.md: Calls and returns)
#pragma once

#include <cstdint>
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
/// To be asked before the command is ended, with which its threads would end.
[[nodiscard]] OpenCalls open_calls(const Calls &calls);

/// After the tracer's finish() and the view's drain(). `most`: how many events were handed to `view`, where no more than a number
/// were wanted (Filters::most_events).
[[nodiscard]] Ledger ledger_of(const Tracer &tracer, const std::vector<PlaceCounts> &counts, const View &view,
                               const OpenCalls &open, std::optional<uint64_t> most);

} // namespace rawbpf::inline v0::trace
