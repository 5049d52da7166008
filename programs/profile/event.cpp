// The table of events. Names are perf's, so that what somebody has in a script goes on working, and what perf-script and pprof
// files say is what their readers expect.
//
//      clock, cycles   tick: a sample says "so many ticks were spent here"
//      the others      happen: each N-th is a sample, which stands for N of them
//
// The kernel counts its software events on each CPU by itself (kernel/events/core.c, perf_swevent_event) and runs the program at
// each N-th. A tracepoint's program runs at every hit, whatever period its event has, so the program counts. alignment-faults and
// emulation-faults aren't in the table: neither x86_64 nor arm64 ever raises them.
#include "programs/profile/event.h"

#include <linux/perf_event.h>

#include "runtime/base/format.h"
#include "runtime/link/names.h"

namespace rawbpf::inline v0::profile {
namespace {

struct Row {
    std::string_view name;
    EventKind kind;
    uint32_t config;
};
constexpr Row kEvents[] = {
    {"cpu-clock", EventKind::clock, PERF_COUNT_SW_CPU_CLOCK},
    {"cycles", EventKind::cycles, PERF_COUNT_HW_CPU_CYCLES},
    {"page-faults", EventKind::software, PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", EventKind::software, PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", EventKind::software, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", EventKind::software, PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", EventKind::software, PERF_COUNT_SW_CPU_MIGRATIONS},
};
constexpr std::string_view kTracepoint = "tracepoint:";

bool is_word(std::string_view text) {
    return !text.empty() &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == std::string_view::npos;
}

} // namespace

std::string Event::tracepoint() const {
    std::string out = name;
    if (const size_t colon = out.find(':'); colon != std::string::npos) out[colon] = '/';
    return out;
}

Result<Event> parse_event(std::string_view text) {
    for (const Row &row : kEvents)
        if (row.name == text) return Event{std::string(text), row.kind, row.config};
    const bool prefixed = text.starts_with(kTracepoint);
    const std::string_view rest = prefixed ? text.substr(kTracepoint.size()) : text;
    if (const size_t colon = rest.find(':'); prefixed || colon != std::string_view::npos) {
        const bool both = colon != std::string_view::npos && is_word(rest.substr(0, colon)) && is_word(rest.substr(colon + 1));
        if (both) return Event{std::string(rest), EventKind::tracepoint, 0};
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" isn't a tracepoint", text),
                                     "tracepoint:CATEGORY:NAME, as in "
                                     "tracepoint:sched:sched_switch"));
    }
    NearestNames near(text);
    std::string all;
    for (const Row &row : kEvents) {
        near.see(row.name);
        append(all, "{}, ", row.name);
    }
    return Unexpected(make_error(Errc::invalid_argument,
                                 format("there is no event \"{}\": there are {}tracepoint:CATEGORY:NAME", text, all),
                                 near.hint()));
}

} // namespace rawbpf::inline v0::profile
