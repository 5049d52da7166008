// NDJSON: a header, an object an event, the counts, the ledger. The fields of an event, in this order:
//
//      {"type":"call" or "return","time":RFC 3339,"t_ns","comm","pid","tid","cpu","probe","function",
//       of USDT probes "provider","name",
//       "args":[{"name","type","value"} ...],"ret","duration_ns","depth","stack":null or {"kernel":[frame...],"user":[...],
//       where unwind tables were used "user_end":a key of the ledger's stack_ends},
//       where the request that runs has any of those asked for "labels":{KEY:value...}}
//
// A value is a number, a text, or null; addresses and numbers above 2^53 are strings, since a double can't hold them. What a
// number stands for is a field of its own beside it: "text" (an enumerator, flags, a function), "target" (a descriptor's file).
// Frames are the profiler's.
#include "programs/render/digits.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/sink.h"
#include "programs/trace/stack_text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

class JsonEvents final : public Sink {
  public:
    using Sink::Sink;

    void begin(std::string &out) override { render::append_json_header(out, o_.run); }

    void event(std::string &out, const Shown &shown) override {
        const Event &event = shown.event;
        const Header &header = event.header;
        {
            render::JsonLine line(out, shown.is_result ? "return" : "call");
            time(line.raw("time"), shown.wall_ns);
            line.number("t_ns", shown.t_ns).text("comm", shown.comm);
            line.number("pid", header.pid).number("tid", header.tid).number("cpu", header.cpu);
            const Plan &how = plan(event);
            out += how.head;
            for (size_t i = 0; i < how.columns.size(); ++i) one_argument(out, shown, i, how);
            out += ']';
            line.raw("ret");
            if (shown.is_result)
                append_json(out, decode_result(event, o_.decoding));
            else
                out += "null";
            shown.duration ? line.number("duration_ns", *shown.duration) : line.null("duration_ns");
            shown.depth ? line.number("depth", *shown.depth) : line.null("depth");
            if (shown.stack)
                append_json_stack(line.raw("stack"), *shown.stack);
            else
                line.null("stack");
            if (shown.labels) render::append_json_labels(line.raw("labels"), *shown.labels);
        }
        done();
    }

    void end(std::string &out, const Ending &ending) override {
        if (o_.view.count) {
            render::JsonLine line(out, "counts");
            render::JsonObject by_function(line.raw("counts"));
            for (size_t i = 0; i < ending.counts.size(); ++i)
                if (!o_.names[i].empty()) append(by_function.key(o_.names[i]), "{}", ending.counts[i].shown);
        }
        append_json_latency(out, o_, ending);
        append_json_trace_ledger(out, o_, ending);
    }

  private:
    void spell_out(Plan &plan, const Event &event) override {
        const ProbeSite &place = *event.place;
        const auto text = [&](std::string_view name, std::string_view value) {
            append(plan.head, ",\"{}\":", name);
            render::append_json(plan.head, value);
        };
        text("probe", place.kind == ProbeKind::usdt ? place.label() : place.describe());
        text("function", place.function);
        if (place.kind == ProbeKind::usdt) text("provider", place.category), text("name", place.function);
        plan.head += ",\"args\":[";
        for (size_t i = 0; i < plan.columns.size(); ++i) {
            const bool known = place.signature.known || !event.layout->columns[i].name.empty();
            std::string before = i ? ",{\"name\":" : "{\"name\":";
            render::append_json(before, plan.columns[i].name);
            before += ",\"type\":";
            if (known && !plan.columns[i].type.name.empty())
                render::append_json(before, plan.columns[i].type.name);
            else
                before += "null";
            plan.before.push_back(before + ",\"value\":");
        }
    }

    void one_argument(std::string &out, const Shown &shown, size_t i, const Plan &how) {
        out += how.before[i];
        if (!append_plain_json(out, shown.event, i, how.columns[i], o_.decoding)) {
            const Decoded value = argument(shown, i);
            append_json(out, value);
            const auto more = [&](std::string_view name, std::string_view text) {
                append(out, ",\"{}\":", name);
                render::append_json(out, text);
            };
            if (!value.name.empty()) more("text", value.name);
            if (!value.target.empty()) more("target", value.target);
        }
        out += '}';
    }

    // As rfc3339() has it; all but the last nine digits are the same for a second.
    void time(std::string &out, uint64_t wall_ns) {
        if (const uint64_t second = wall_ns / 1'000'000'000; second != second_) {
            second_ = second;
            stamp_ = '"' + render::rfc3339(wall_ns).substr(0, 20);
        }
        out += stamp_;
        render::append_padded(out, wall_ns, 9);
        out += "Z\"";
    }

    uint64_t second_ = UINT64_MAX; // that stamp_ was made for
    std::string stamp_;
};

} // namespace

void append_json_latency(std::string &out, const SinkOptions &options, const Ending &ending) {
    if (!options.view.latency) return;
    for (const auto &[place, times] : ending.latency) {
        render::JsonLine line(out, "latency");
        line.text("function", options.names[place]).number("count", times.count()).number("sum_ns", times.sum());
        line.number("least_ns", times.least()).number("p50_ns", times.percentile(0.5));
        line.number("p90_ns", times.percentile(0.9)).number("p99_ns", times.percentile(0.99));
        line.number("p999_ns", times.percentile(0.999)).number("most_ns", times.most());
    }
}

// The one that all outputs end with, and behind its fields each place's.
void append_json_trace_ledger(std::string &out, const SinkOptions &options, const Ending &ending) {
    render::append_json_ledger(out, ending.ledger);
    out.resize(out.size() - 2); // "}", and the end of the line
    out += ",\"functions\":";
    {
        render::JsonObject functions(out);
        for (size_t i = 0; i < ending.counts.size(); ++i) {
            const PlaceCounts &place = ending.counts[i];
            if (place.counts.fired == 0 || options.names[i].empty()) continue;
            render::JsonObject one(functions.key(options.names[i]));
            one.number("fired", place.counts.fired).number("shown", place.shown).number("filtered", place.counts.filtered);
            one.number("sampled_out", place.counts.sampled_out).number("lost", place.lost());
        }
    }
    out += "}\n";
}

std::unique_ptr<Sink> make_json_events(SinkOptions options) { return std::make_unique<JsonEvents>(options); }

} // namespace rawbpf::inline v0::trace
