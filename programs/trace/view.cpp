// A line an event, in the format of the lab that this grew out of, or an object a line:
//
//      [2025-01-15T10:23:45.123] cat[12345]: vfs_read(file=/etc/passwd, buf=0x7fff1234, count=4096, pos=0xffffc900...)
//
// and at the end how often each function was called.
#include "programs/trace/view.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "programs/trace/decode.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kWriteAt = 64 << 10;
constexpr size_t kBar = 40;

void append_duration(std::string &out, uint64_t ns) {
    if (ns < 1000)
        append(out, "{} ns", ns);
    else if (ns < 1'000'000)
        append(out, "{:.1f} us", double(ns) / 1e3);
    else if (ns < 1'000'000'000)
        append(out, "{:.1f} ms", double(ns) / 1e6);
    else
        append(out, "{:.2f} s", double(ns) / 1e9);
}
std::string duration(uint64_t ns) {
    std::string out;
    append_duration(out, ns);
    return out;
}

std::string_view comm_of(const Header &header) { return {header.comm, strnlen(header.comm, sizeof header.comm)}; }

} // namespace

// --- Histogram

uint32_t Histogram::bucket(uint64_t ns) {
    if (ns < kParts) return static_cast<uint32_t>(ns);
    const auto power = static_cast<uint32_t>(std::bit_width(ns) - 1);
    return (power - 2) * kParts + static_cast<uint32_t>(ns >> (power - 3) & (kParts - 1));
}
uint64_t Histogram::upper(uint32_t bucket) {
    if (bucket < kParts) return bucket;
    const uint32_t power = bucket / kParts + 2;
    return ((uint64_t{kParts} + bucket % kParts + 1) << (power - 3)) - 1;
}
void Histogram::add(uint64_t ns) {
    const uint32_t at = bucket(ns);
    if (at >= buckets_.size()) buckets_.resize(at + 1);
    ++buckets_[at];
    ++count_;
    sum_ += ns;
    least_ = std::min(least_, ns);
    most_ = std::max(most_, ns);
}
uint64_t Histogram::percentile(double share) const {
    const auto wanted = static_cast<uint64_t>(double(count_) * share);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < buckets_.size(); ++i) {
        seen += buckets_[i];
        if (seen > wanted || seen == count_) return std::min(upper(i), most_);
    }
    return most_;
}
uint64_t Histogram::power(uint32_t i) const {
    uint64_t sum = 0;
    for (uint32_t b = 0; b < buckets_.size(); ++b) {
        const uint64_t low = b == 0 ? 0 : upper(b - 1) + 1;
        const uint32_t of = low == 0 ? 0 : static_cast<uint32_t>(std::bit_width(low) - 1);
        if (of == i) sum += buckets_[b];
    }
    return sum;
}

// --- View

View::View(const ViewOptions &options, const std::vector<Place> &places, const RunInfo &run, const btf::Btf *kernel,
           uint64_t start_ns, render::Writer &writer)
    : options_(options), places_(places), run_(run), kernel_(kernel), start_ns_(start_ns), writer_(writer),
      called_(places.size()), returns_(places.size()) {}

Result<void> View::start() {
    if (options_.format == Format::json) render::append_json_header(out_, run_);
    return flush();
}

Result<void> View::flush() {
    writer_.write(out_);
    out_.clear();
    return writer_.flush();
}

std::string View::name_of(uint32_t place) const {
    const auto same = [&](const Place &other) { return other.function == places_[place].function; };
    return std::count_if(places_.begin(), places_.end(), same) > 1 ? places_[place].describe() : places_[place].function;
}

void View::note_unreadable(bool unreadable) { unreadable_ += unreadable; }

void View::event(const Event &event) {
    const Header &header = event.header;
    Calls::Returned returned;
    uint32_t depth = 0;
    if (header.what == What::result) {
        if (header.duration != 0) { // the kernel paired them
            returned.paired = true;
            returned.duration = header.duration;
        } else {
            returned = calls_.returned(header.tid, header.place, header.time);
        }
        depth = returned.depth;
        ++returns_[header.place];
        if (returned.paired) latency_[header.place].add(returned.duration);
    } else {
        if (options_.returns) depth = calls_.call(header.tid, header.place, header.time);
        ++called_[header.place];
    }
    if (options_.format == Format::json)
        json_event(event, depth, returned);
    else
        text_event(event, depth, returned);
    if (out_.size() >= kWriteAt) (void)flush(); // an error stays, and the next flush() tells it
}

void View::stamp(uint64_t t_ns) {
    const uint64_t wall = run_.start_wall_ns + (t_ns - start_ns_);
    if (wall / 1'000'000'000 != second_) {
        second_ = wall / 1'000'000'000;
        stamp_ = render::rfc3339(wall).substr(0, 19);
    }
    append(out_, "[{}.{:03}]", stamp_, wall / 1'000'000 % 1000);
}

void View::arguments(const Event &event, bool json) {
    bool unreadable = false;
    for (size_t i = 0; i < event.layout->columns.size(); ++i) {
        const Blob *its = event.blob(i);
        const Type type = event.type(i);
        const bool known = event.place->signature.known || !event.layout->columns[i].name.empty();
        if (json) {
            if (i) out_ += ',';
            render::JsonObject one(out_);
            one.text("name", event.name(i));
            one.text_or_null("type", known ? type.name : "");
            append_value(one.raw("value"), type, event.value(i), its, event.record, kernel_, true, unreadable);
            if (const std::string target = descriptor_target(its, event.record); !target.empty()) one.text("target", target);
        } else {
            append(out_, "{}{}=", i ? ", " : "", event.name(i));
            append_value(out_, type, event.value(i), its, event.record, kernel_, false, unreadable);
        }
    }
    note_unreadable(unreadable);
}

void View::text_event(const Event &event, uint32_t depth, const Calls::Returned &returned) {
    const Header &header = event.header;
    const bool result = header.what == What::result;
    stamp(header.time);
    out_ += ' ';
    render::append_comm(out_, comm_of(header));
    append(out_, "[{}]: ", header.pid);
    if (options_.graph) {
        if (header.tid != header.pid) append(out_, "({}) ", header.tid);
        out_.append(size_t{2} * depth, ' ');
    }
    if (!result) {
        append(out_, "{}(", event.place->function);
        arguments(event, false);
        out_ += options_.graph ? ") {\n" : ")\n";
        return;
    }
    if (options_.graph)
        append(out_, "}} {}", event.place->function);
    else {
        append(out_, "{}(", event.place->function);
        arguments(event, false);
        out_ += ')';
    }
    if (event.result_type().show != Show::nothing) {
        out_ += " = ";
        append_result(out_, event.result_type(), event.result(), kernel_, false, !is_user_function(event.place->kind));
    }
    if (returned.paired) {
        out_ += "  ";
        append_duration(out_, returned.duration);
    }
    out_ += '\n';
}

void View::json_event(const Event &event, uint32_t depth, const Calls::Returned &returned) {
    const Header &header = event.header;
    const bool result = header.what == What::result;
    const uint64_t t_ns = header.time - start_ns_;
    render::JsonLine line(out_, result ? "return" : "call");
    line.text("time", render::rfc3339(run_.start_wall_ns + t_ns));
    line.number("t_ns", t_ns);
    line.text("comm", comm_of(header));
    line.number("pid", header.pid).number("tid", header.tid).number("cpu", header.cpu);
    line.text("probe", event.place->describe()).text("function", event.place->function);
    line.raw("args") += '[';
    arguments(event, true);
    out_ += ']';
    if (result) {
        append_result(line.raw("ret"), event.result_type(), event.result(), kernel_, true, !is_user_function(event.place->kind));
    } else {
        line.null("ret");
    }
    if (returned.paired)
        line.number("duration_ns", returned.duration);
    else
        line.null("duration_ns");
    if (result ? !returned.paired : !options_.returns)
        line.null("depth");
    else
        line.number("depth", depth);
}

void View::counts_table(const std::vector<PlaceCounts> &counts) {
    // A call with its return is two events, or one. Of those that are counted in the kernel there are none.
    std::vector<uint64_t> calls(counts.size());
    for (uint32_t i = 0; i < counts.size(); ++i) calls[i] = options_.count ? counts[i].shown : std::max(called_[i], returns_[i]);
    std::vector<uint32_t> order;
    size_t width = 20;
    uint64_t silent = 0;
    for (uint32_t i = 0; i < counts.size(); ++i) {
        if (calls[i] == 0 && counts.size() > 20) {
            ++silent;
            continue;
        }
        order.push_back(i);
        width = std::max(width, std::min<size_t>(name_of(i).size(), 60));
    }
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return calls[a] > calls[b]; });
    for (uint32_t i : order) append(out_, "{:<{}}: {} calls\n", name_of(i), width, render::grouped(calls[i]));
    if (silent) append(out_, "{} others: 0 calls\n", silent);
}

void View::latency_tables() {
    for (const auto &[place, histogram] : latency_) {
        append(out_, "\n{}: {} calls, {} in all\n", name_of(place), render::grouped(histogram.count()),
               duration(histogram.sum()));
        append(out_, "  least {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, most {}\n", duration(histogram.least()),
               duration(histogram.percentile(0.5)), duration(histogram.percentile(0.9)), duration(histogram.percentile(0.99)),
               duration(histogram.percentile(0.999)), duration(histogram.most()));
        const auto first = static_cast<uint32_t>(histogram.least() ? std::bit_width(histogram.least()) - 1 : 0);
        const auto last = static_cast<uint32_t>(histogram.most() ? std::bit_width(histogram.most()) - 1 : 0);
        uint64_t highest = 1;
        for (uint32_t i = first; i <= last; ++i) highest = std::max(highest, histogram.power(i));
        for (uint32_t i = first; i <= last; ++i) {
            const uint64_t n = histogram.power(i);
            append(out_, "  {:>9} .. {:<9} {:>10} |{:<{}}|\n", duration(uint64_t{1} << i), duration(uint64_t{2} << i),
                   render::grouped(n), std::string(n * kBar / highest, '#'), kBar);
        }
    }
}

Result<void> View::finish(const std::vector<PlaceCounts> &counts, const Ledger &ledger) {
    if (options_.format == Format::json) {
        if (options_.count) {
            render::JsonLine line(out_, "counts");
            render::JsonObject by_function(line.raw("counts"));
            for (uint32_t i = 0; i < counts.size(); ++i) by_function.number(name_of(i), counts[i].shown);
        }
        render::append_json_ledger(out_, ledger);
        return flush();
    }
    if (options_.latency) latency_tables();
    if (options_.count || !options_.quiet) {
        if (!options_.count) out_ += "\nFunction call statistics:\n";
        counts_table(counts);
    }
    return flush();
}

} // namespace rawbpf::inline v0::trace
