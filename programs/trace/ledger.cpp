#include "programs/trace/ledger.h"

#include <utility>

#include "runtime/sys/process.h"

namespace rawbpf::inline v0::trace {

// A call that goes on has no return yet: its line is as incomplete as that of one that never will.
OpenCalls open_calls(const Calls &calls, const std::function<bool(uint32_t)> &alive) {
    OpenCalls out;
    for (const auto &[caller, open] : calls.still_open()) (alive(Event::thread_of(caller)) ? out.go_on : out.ended) += open;
    return out;
}

OpenCalls open_calls(const Calls &calls) {
    return open_calls(calls, [](uint32_t id) { return sys::process_exists(static_cast<int>(id)); });
}

Spent spent_of(const Tracer &tracer, std::vector<PlaceCounts> counts, std::optional<uint64_t> most) {
    return {std::move(counts), tracer.malformed(), tracer.aggregate() != nullptr, most};
}

Ledger sums_of(const Spent &spent, uint64_t unknown_stack) {
    Ledger out;
    uint64_t no_room = 0, backlog_full = 0, left_out = 0, shown = 0;
    for (const PlaceCounts &place : spent.counts) {
        out.fired += place.counts.fired;
        out.filtered += place.counts.filtered;
        out.sampled_out += place.counts.sampled_out;
        no_room += place.counts.lost;
        backlog_full += place.backlog_full;
        left_out += place.left_out;
        shown += place.shown;
    }
    out.shown = shown;
    out.lost = {
        {spent.groups ? "map_full" : "ring_full", no_room}, {"backlog_full", backlog_full}, {"stopped_by_signal", left_out}};
    if (spent.most && shown > *spent.most) {
        out.shown = *spent.most;
        out.lost.emplace_back("after_max_events", shown - *spent.most);
    }
    const std::pair<const char *, uint64_t> rare[] = {{"unknown_stack", unknown_stack}, {"malformed", spent.malformed}};
    for (const auto &[reason, n] : rare)
        if (n) out.lost.emplace_back(reason, n);
    return out;
}

Ledger ledger_of(const Spent &spent, const View &view, const OpenCalls &open) {
    const StackCounts *stacks = view.stack_counts();
    Ledger out = sums_of(spent, stacks ? stacks->unknown() : 0);
    const Calls &calls = view.calls();
    const std::pair<const char *, uint64_t> incomplete[] = {
        {"argument_unreadable", view.unreadable()},
        {"user_stack_unreadable", view.stacks_unreadable()},
        {"return_missed", calls.missed_returns()},   // left by longjmp() or an exception, or its record was lost
        {"call_goes_on", open.go_on},                // when the trace ends
        {"thread_ended_in_call", open.ended},        // exit(), a signal
        {"began_another_program", calls.replaced()}, // execve()
        {"nested_too_deep", calls.too_deep()},       // the kernel watches 64 returns of a thread
        {"call_missed", calls.missed_calls()},       // it began before the trace, or in the parent of a fork
    };
    for (const auto &[reason, n] : incomplete)
        if (n) out.degraded.emplace_back(reason, n);
    out.stack_ends = view.stack_ends().list();
    return out;
}

} // namespace rawbpf::inline v0::trace
