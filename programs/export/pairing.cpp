// Pairing, where ends go missing: a process is killed, a longjmp passes a probe by, a ring buffer was full.
//
// An end takes the innermost start of its own family, and leaves others above it alone: they may be interleaved with it, and
// still end. But they have outlived what they began in, so that nothing that begins from now on is their child:
//
//      a_start  x_start  a_end  b_start  b_end          x's end was lost: b belongs to nobody, x expires
//
// Starts are kept in the order in which they came, which is nearly that of their times (records of different CPUs may overtake
// each other by microseconds), so that the oldest is always the first.
#include "programs/export/pairing.h"

#include <algorithm>
#include <iterator>

namespace rawbpf::inline v0::telemetry {

size_t Pairing::RunnerHash::operator()(const Runner &place) const {
    uint64_t h = place.id * 0x9e3779b97f4a7c15 ^ (uint64_t{place.pid} << 1 | (place.goroutine ? 1 : 0)) * 0xc2b2ae3d27d4eb4f;
    return static_cast<size_t>(h ^ h >> 29);
}

Pairing::Runner Pairing::runner_of(const ProbeEvent &event) {
    return event.goroutine ? Runner{event.goroutine, event.pid, true} : Runner{event.tid, event.pid, false};
}

void Pairing::give_ids(Span &span, const Runner &place) {
    span.span_id = make_span_id(ids_);
    if (const auto stack = stacks_.find(place); stack != stacks_.end())
        for (auto it = stack->second.rbegin(); it != stack->second.rend(); ++it)
            if (const Open &open = by_age_.at(*it); !open.outlived) {
                span.trace_id = open.span.trace_id;
                span.parent = open.span.span_id;
                return;
            }
    span.trace_id = make_trace_id(ids_);
}

void Pairing::event(const ProbeEvent &event, std::vector<Span> &out) {
    const Meaning meaning = meaning_of(event);
    const Runner place = runner_of(event);
    switch (meaning.role) {
    case Role::none: ++counts_.ignored; return;
    case Role::whole:
    case Role::point: {
        const bool whole = meaning.role == Role::whole;
        ++(whole ? counts_.wholes : counts_.points);
        Span span;
        give_ids(span, place);
        span.end = event.time;
        span.start = whole ? event.time - std::min(event.time, event.duration) : event.time;
        describe_start(span, meaning, event, options_.conventions);
        if (whole) describe_end(span, meaning, event, options_.conventions);
        out.push_back(std::move(span));
        return;
    }
    case Role::start: {
        ++counts_.starts;
        if (options_.most_open == 0 || options_.deepest == 0) {
            ++counts_.dropped;
            return;
        }
        if (const auto stack = stacks_.find(place); stack != stacks_.end() && stack->second.size() >= options_.deepest)
            give_up(by_age_.find(stack->second.front()), nullptr);
        if (by_age_.size() >= options_.most_open) give_up(by_age_.begin(), nullptr);
        Open open{place, std::string(event.provider), std::string(meaning.family), {}};
        give_ids(open.span, place);
        open.span.start = open.span.end = event.time;
        describe_start(open.span, meaning, event, options_.conventions);
        stacks_[place].push_back(next_);
        by_age_.emplace_hint(by_age_.end(), next_++, std::move(open));
        return;
    }
    case Role::end:
    case Role::failed_end: break;
    }
    ++counts_.ends;
    const auto found = stacks_.find(place);
    if (found == stacks_.end()) {
        ++counts_.orphans;
        return;
    }
    std::vector<uint64_t> &stack = found->second;
    const auto mine = std::find_if(stack.rbegin(), stack.rend(), [&](uint64_t key) {
        const Open &open = by_age_.at(key);
        return open.family == meaning.family && open.provider == event.provider;
    });
    if (mine == stack.rend()) {
        ++counts_.orphans;
        return;
    }
    for (auto above = stack.rbegin(); above != mine; ++above) by_age_.at(*above).outlived = true;
    const auto entry = by_age_.find(*mine);
    Span span = std::move(entry->second.span);
    by_age_.erase(entry);
    stack.erase(std::next(mine).base());
    if (stack.empty()) stacks_.erase(found);
    span.end = std::max(span.start, event.time);
    describe_end(span, meaning, event, options_.conventions);
    ++counts_.paired;
    out.push_back(std::move(span));
}

// Forgets an open start; `out` gets it as a span without a length, or else it counts as dropped.
void Pairing::give_up(Age::iterator oldest, std::vector<Span> *out) {
    const auto found = stacks_.find(oldest->second.place);
    std::erase(found->second, oldest->first);
    if (found->second.empty()) stacks_.erase(found);
    if (out) {
        ++counts_.expired;
        Span span = std::move(oldest->second.span);
        span.end = span.start;
        span.set("rawbpf.unpaired", true);
        out->push_back(std::move(span));
    } else
        ++counts_.dropped;
    by_age_.erase(oldest);
}

void Pairing::expire(uint64_t now, std::vector<Span> &out) {
    while (!by_age_.empty() && by_age_.begin()->second.span.start < now &&
           now - by_age_.begin()->second.span.start >= options_.expire_ns)
        give_up(by_age_.begin(), &out);
}

void Pairing::end_process(uint32_t pid, std::vector<Span> &out) {
    for (auto it = by_age_.begin(); it != by_age_.end();) {
        const auto here = it++;
        if (here->second.place.pid == pid) give_up(here, &out);
    }
}

void Pairing::end(std::vector<Span> &out) {
    while (!by_age_.empty()) give_up(by_age_.begin(), &out);
}

} // namespace rawbpf::inline v0::telemetry
