// What all formats need, once: each event is put into its thread's calls, its times are gathered, its stack is named.
//
// Names of the kernel's functions come from a pass over all of its symbols, some tens of milliseconds. So with --stack an event
// with an unknown kernel frame waits, and with it those behind it, until a pass is affordable: passes take a twentieth of the
// time at most, and nothing waits for more than two seconds. The places of its frames are found at once, while its process is
// there.
#include "programs/trace/view.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "programs/render/text.h"
#include "programs/trace/spans.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kWriteAt = 64 << 10;
constexpr size_t kMostWaiting = 4096;     // events of 1.2 KB
constexpr uint64_t kIdleNs = 100'000'000; // after so long without an event, what is held back for the next one is shown
constexpr size_t kMostSilent = 20;        // functions without a call that are worth a line each

std::string_view comm_of(const Header &header) { return {header.comm, strnlen(header.comm, sizeof header.comm)}; }

std::vector<std::string> names_of(const std::vector<ProbeSite> &places) {
    std::map<std::string_view, size_t> uses;
    for (const ProbeSite &place : places) ++uses[place.function];
    std::vector<std::string> out;
    out.reserve(places.size());
    std::set<std::string> sites;
    for (const ProbeSite &place : places) {
        if (place.kind != ProbeKind::usdt)
            out.push_back(uses[place.function] > 1 ? place.describe() : place.function);
        else
            out.push_back(sites.insert(place.describe()).second ? place.label() : "");
    }
    // A program may have several static functions of one name.
    std::map<std::string, size_t> same;
    for (const std::string &name : out) ++same[name];
    for (size_t i = 0; i < out.size(); ++i)
        if (!out[i].empty() && same[out[i]] > 1) append(out[i], "@{:#x}", places[i].address);
    return out;
}

std::unique_ptr<Sink> make_sink(const SinkOptions &options) {
    if (options.view.spans) return make_spans(options, *options.view.spans);
    if (options.view.stacks) return nullptr;
    switch (options.view.format) {
    case Format::json: return make_json_events(options);
    case Format::chrome: return make_chrome(options);
    case Format::folded: return make_folded_calls(options);
    case Format::protobuf: return make_protobuf(options);
    default: break;
    }
    return make_lines(options);
}

} // namespace

View::View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
           uint64_t start_ns, render::Writer &writer)
    : View(options, places, run, kernel, start_ns, writer, std::make_unique<Names>(options.debug_info, options.source)) {
    if (options.group_stacks) group_stacks_.emplace(*live_names_);
}

View::View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
           uint64_t start_ns, render::Writer &writer, std::unique_ptr<Names> live)
    : View(options, places, run, kernel, start_ns, writer, *live) {
    live_names_ = std::move(live);
}

View::View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
           uint64_t start_ns, render::Writer &writer, EventNames &names)
    : options_(options), places_(places), run_(run), start_ns_(start_ns), writer_(writer), names_(names),
      place_names_(names_of(places)), sink_(make_sink({options_, places_, place_names_, run_, {kernel, &names_}})),
      called_(places.size()), returned_(places.size()) {
    if (options.stacks) stacks_ = std::make_unique<StackCounts>(names_, *options.stacks, run, start_ns);
    if (stacks_ && options.threads_apart) stacks_->keep_threads_apart();
}

bool View::wants_watch(int workload) const {
    if (options_.stack) return true;
    if (workload < 0 || options_.count || options_.format == Format::folded) return false;
    return shows_functions(places_);
}

Result<void> View::start() {
    if (sink_) sink_->begin(out_);
    return flush(start_ns_);
}

Result<void> View::count_in_kernel(Tracer &tracer) {
    if (group_stacks_) return group_stacks_->start(tracer);
    return stacks_ ? stacks_->count_in_kernel(tracer, *live_names_) : Result<void>();
}

Result<void> View::stop_counting() { return stacks_ ? stacks_->stop() : Result<void>(); }

Result<void> View::flush(uint64_t now_ns) {
    if (stacks_) return stacks_->tick(now_ns);
    if (group_stacks_) TRY(group_stacks_->tick(now_ns));
    if (!waiting_.empty() && names_.kernel_ready(kernel_stacks(), now_ns, waiting_.front().stack.t_ns)) show_waiting();
    if (now_ns > last_event_ns_ + kIdleNs) sink_->idle(out_);
    sink_->tick(out_, run_.start_wall_ns + (now_ns - start_ns_));
    if (waiting_.empty() && !group_stacks_) names_.trim();
    writer_.write(out_);
    out_.clear();
    return writer_.flush();
}

void View::event(const Event &event) {
    last_event_ns_ = event.header.time;
    if (event.header.what == What::exec) return began_program(event.header);
    if (stacks_) return stacks_->add(event);
    if (group_stacks_) return group_stacks_->add(event);
    if (!options_.stack) {
        show(event, nullptr, names_.labels_of(event));
    } else {
        processes::InternedSample stack = names_.locate(event);
        stack.labels = names_.labels_of(event);
        if (stack.user_bytes < 0) ++stacks_unreadable_;
        if (waiting_.empty() && names_.kernel_known(stack.kernel)) {
            const NamedStack named = names_.name(stack);
            show(event, &named, stack.labels);
        } else {
            waiting_.push_back({event, {event.record.begin(), event.record.end()}, stack});
            if (waiting_.size() >= kMostWaiting) show_waiting();
        }
    }
    if (out_.size() < kWriteAt) return;
    writer_.write(out_); // an error stays, and the next flush() tells it
    out_.clear();
}

void View::began_program(const Header &header) {
    if (!waiting_.empty()) show_waiting(); // the calls among them come first
    calls_.began_program(header.tid);
    calls_.began_program(header.place);
    for (const auto &[caller, open] : calls_.still_open())
        if (caller >> 63 && Event::thread_of(caller) == header.pid) calls_.began_program(caller, true);
}

std::vector<uint32_t> View::kernel_stacks() const {
    std::vector<uint32_t> nodes;
    for (const Waiting &one : waiting_) nodes.push_back(one.stack.kernel);
    return nodes;
}

void View::show_waiting() {
    names_.name_kernel(kernel_stacks());
    for (Waiting &one : waiting_) {
        one.event.record = one.record;
        const NamedStack named = names_.name(one.stack);
        show(one.event, &named, one.stack.labels);
    }
    waiting_.clear();
}

void View::show(const Event &event, const NamedStack *stack, uint32_t labels) {
    const Header &header = event.header;
    Shown shown{.event = event, .comm = comm_of(header)};
    shown.t_ns = header.time > start_ns_ ? header.time - start_ns_ : 0;
    shown.wall_ns = run_.start_wall_ns + shown.t_ns;
    shown.is_result = header.what == What::result;
    shown.stack = stack;
    shown.labels = names_.label_sets()[labels].get();
    const bool user = is_user_function(event.place->kind) && !event.place->go_call; // the kernel watches the return
    const uint64_t caller = event.caller();
    ++(shown.is_result ? returned_ : called_)[header.place];
    if (!shown.is_result) {
        if (options_.returns)
            shown.depth = has_two_ends(event.place->kind) ? calls_.call(caller, header.place, header.time, header.frame, user)
                                                          : static_cast<uint32_t>(calls_.open(caller).size());
    } else if (header.duration != 0) { // the kernel paired them
        shown.duration = header.duration;
    } else if (const Calls::Returned returned = calls_.returned(caller, header.place, header.time, user); returned.paired) {
        shown.depth = returned.depth;
        shown.duration = returned.duration;
        shown.self = returned.duration - std::min(returned.duration, returned.children);
        shown.within = calls_.open(caller);
    }
    if (shown.duration) latency_[header.place].add(*shown.duration);
    sink_->event(out_, shown);
}

void View::counts_table(std::string &out, const std::vector<PlaceCounts> &counts, size_t most_rows) {
    std::vector<uint32_t> order;
    size_t width = 20, left = 0;
    uint64_t silent = 0, left_calls = 0;
    for (uint32_t i = 0; i < counts.size(); ++i) {
        if (place_names_[i].empty()) continue;
        if (counts[i].shown == 0 && counts.size() > kMostSilent)
            ++silent;
        else
            order.push_back(i);
    }
    stable_sort(order, [&](uint32_t a, uint32_t b) { return counts[a].shown > counts[b].shown; });
    while (order.size() > most_rows) {
        ++left;
        left_calls += counts[order.back()].shown;
        order.pop_back();
    }
    for (uint32_t i : order) width = std::max(width, std::min<size_t>(place_names_[i].size(), 60));
    const auto calls = [](uint64_t n) { return format("{} call{}", render::grouped(n), n == 1 ? "" : "s"); };
    for (uint32_t i : order) {
        render::append_printable(out, place_names_[i]);
        append(out, "{:<{}}: {}\n", "", width - std::min(width, render::columns(place_names_[i])), calls(counts[i].shown));
    }
    if (left) append(out, "{} more: {}\n", left, calls(left_calls));
    if (silent) append(out, "{} other{}: 0 calls\n", silent, silent == 1 ? "" : "s");
}

void View::latency_tables() {
    for (const auto &[place, histogram] : latency_) {
        append(out_, "\n{}: {} call{}, {} in all\n", place_names_[place], render::grouped(histogram.count()),
               histogram.count() == 1 ? "" : "s", duration(histogram.sum()));
        append_histogram(out_, histogram);
    }
}

Result<void> View::redraw(const std::vector<PlaceCounts> &counts, const sys::TerminalSize &size) {
    std::string table;
    counts_table(table, merge_sites(places_, counts), LiveText::table_rows(size));
    live_.draw(out_, table, size);
    writer_.write(out_);
    out_.clear();
    return writer_.flush();
}

void View::drain() {
    if (!waiting_.empty()) show_waiting();
}

void View::part_ends() {
    drain();
    if (stacks_) stacks_->draw();
}

Result<void> View::finish(const std::vector<PlaceCounts> &places_counts, const Ledger &ledger) {
    const std::vector<PlaceCounts> counts = merge_sites(places_, places_counts);
    drain();
    if (stacks_)
        stacks_->finish(ledger);
    else
        sink_->end(out_, {counts, ledger, latency_});
    if (options_.format == Format::text) {
        if (options_.latency) latency_tables();
        live_.clear(out_);
        if (options_.count || !options_.quiet) {
            if (!options_.count) out_ += "\nFunction call statistics:\n";
            std::vector<PlaceCounts> calls = counts;
            // A call with its return is two events, or one. Of those that are counted in the kernel there are none.
            for (size_t i = 0; i < calls.size() && !options_.count; ++i)
                if (places_[i].kind != ProbeKind::usdt) calls[i].shown = std::max(called_[i], returned_[i]);
            counts_table(out_, calls, SIZE_MAX);
        }
    }
    writer_.write(out_);
    out_.clear();
    return writer_.flush();
}

std::vector<PlaceCounts> merge_sites(const std::vector<ProbeSite> &places, std::vector<PlaceCounts> counts) {
    std::map<std::string, size_t> first;
    for (size_t i = 0; i < counts.size(); ++i) {
        if (places[i].kind != ProbeKind::usdt) continue;
        const auto [at, is_new] = first.emplace(places[i].describe(), i);
        if (is_new) continue;
        PlaceCounts &sum = counts[at->second], &one = counts[i];
        sum.counts.fired += one.counts.fired;
        sum.counts.filtered += one.counts.filtered;
        sum.counts.sampled_out += one.counts.sampled_out;
        sum.counts.lost += one.counts.lost;
        sum.shown += one.shown;
        sum.backlog_full += one.backlog_full;
        sum.left_out += one.left_out;
        one = {};
    }
    return counts;
}

std::string places_ledger(const std::vector<std::string> &names, const std::vector<PlaceCounts> &counts) {
    std::string out;
    size_t width = 8;
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < counts.size(); ++i)
        if (counts[i].counts.fired && !names[i].empty())
            order.push_back(i), width = std::max(width, std::min<size_t>(names[i].size(), 48));
    if (order.empty()) return out;
    stable_sort(order, [&](uint32_t a, uint32_t b) { return counts[a].counts.fired > counts[b].counts.fired; });
    append(out, "  {:<{}} {:>11} {:>11} {:>11} {:>11} {:>11}\n", "function", width, "fired", "shown", "filtered", "sampled out",
           "lost");
    for (uint32_t i : order) {
        const PlaceCounts &place = counts[i];
        append(out, "  {:<{}} {:>11} {:>11} {:>11} {:>11} {:>11}\n", render::cut(names[i], 48), width,
               render::grouped(place.counts.fired), render::grouped(place.shown), render::grouped(place.counts.filtered),
               render::grouped(place.counts.sampled_out), render::grouped(place.lost()));
    }
    return out;
}

} // namespace rawbpf::inline v0::trace
