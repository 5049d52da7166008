// From records to spans. What a probe means is programs/export's to know (pairs.cpp); here its arguments are decoded and named:
//
//      USDT probe        by its name: query__start begins, query__done ends
//      function          its call begins, its return ends; or one record of both, where the kernel paired them
//      tracepoint        a point in time
//
// A span is shown when it is complete, so an inner one before the one that it lies in:
//
//      [2025-01-15T10:23:45.123] postgres[77]: SELECT 1.2 ms server trace=4bf92f35 db.query.text="select ?"
#include "programs/trace/spans.h"

#include <algorithm>

#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "programs/trace/histogram.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::trace {
namespace {

using telemetry::Span;

constexpr uint64_t kTickNs = 100'000'000;
constexpr int64_t kExact = int64_t{1} << 53; // what a double holds
constexpr size_t kShownId = 4;               // bytes of a trace's id in text

std::string_view word(telemetry::SpanKind kind) {
    switch (kind) {
    case telemetry::SpanKind::server: return "server";
    case telemetry::SpanKind::client: return "client";
    case telemetry::SpanKind::internal: break;
    }
    return "internal";
}
std::string_view word(telemetry::Status status) {
    return status == telemetry::Status::error ? "error" : status == telemetry::Status::ok ? "ok" : "unset";
}

// Refers to the texts in `value`, or in `kept`.
decltype(telemetry::Argument::value) argument_value(const Decoded &value, std::string &kept) {
    using Kind = Decoded::Kind;
    const auto as_text = [&] {
        kept.clear();
        append_text(kept, value);
        return std::string_view(kept);
    };
    switch (value.kind) {
    case Kind::nothing:
    case Kind::null:
    case Kind::nil:
    case Kind::unreadable:
    case Kind::unavailable: return {};
    case Kind::truth: return value.number != 0;
    case Kind::real: return value.real;
    case Kind::text:
    case Kind::words: return std::string_view(value.text);
    case Kind::list:
    case Kind::tuple:
    case Kind::address: return as_text();
    case Kind::character:
    case Kind::number: break;
    }
    if (!value.name.empty() || !value.target.empty() || value.number > static_cast<uint64_t>(INT64_MAX)) return as_text();
    return value.negative ? -static_cast<int64_t>(value.number) : static_cast<int64_t>(value.number);
}

std::string_view provider_of(const ProbeSite &place) {
    if (place.kind == ProbeKind::usdt || place.kind == ProbeKind::tracepoint) return place.category;
    return is_user_function(place.kind) ? render::base_name(place.file) : std::string_view();
}

class Spans final : public Sink {
  public:
    Spans(SinkOptions options, const SpanOptions &spans) : Sink(options), s_(spans), pairing_(*spans.ids, spans.pairing) {}

    void begin(std::string &out) override {
        if (json()) render::append_json_header(out, o_.run);
    }

    void event(std::string &out, const Shown &shown) override {
        const Header &header = shown.event.header;
        const ProbeSite &place = *shown.event.place;
        telemetry::ProbeEvent event;
        event.provider = provider_of(place);
        event.name = place.function;
        event.phase = phase_of(shown);
        event.pid = header.pid;
        event.tid = header.tid;
        event.time = shown.wall_ns;
        event.duration = shown.duration.value_or(0);
        event.comm = shown.comm;
        const std::vector<Column> &columns = shown.event.layout->columns;
        const size_t count = shown.event.layout->arguments();
        values_.resize(count);
        texts_.resize(count);
        if (shown.event.layout->goroutine) event.goroutine = shown.event.goroutine();
        arguments_.clear();
        for (size_t i = 0; i < count; ++i) {
            if (columns[i].value.from == Value::From::goroutine) {
                event.goroutine = shown.event.value(i);
                continue;
            }
            values_[i] = argument(shown, i);
            const uint32_t n = columns[i].value.argument;
            std::string_view name = columns[i].name;
            if (name.empty() && n < place.signature.parameters.size()) name = place.signature.parameters[n].name;
            arguments_.push_back({name, argument_value(values_[i], texts_[i])});
        }
        event.arguments = arguments_;
        if (shown.is_result) {
            result_ = decode_result(shown.event, o_.decoding);
            event.result = argument_value(result_, result_text_);
            const bool errors = is_kernel_function(place.kind) || place.kind == ProbeKind::syscall;
            if (const int error = errors ? error_of(shown.event.result_type(), shown.event.result()) : 0; error) {
                event.result = -int64_t{error};
                error_ = result_.name.empty() ? std::to_string(error) : result_.name;
                event.error = error_;
            }
        }
        pairing_.event(event, made_);
        done();
        hand_out(out);
    }

    void tick(std::string &out, uint64_t wall_ns) override {
        if (wall_ns < next_tick_) return;
        next_tick_ = wall_ns + kTickNs;
        pairing_.expire(wall_ns, made_);
        hand_out(out);
        if (s_.outlet) s_.outlet->counts(pairing_.counts());
    }

    void end(std::string &out, const Ending &ending) override {
        pairing_.end(made_);
        hand_out(out);
        SpanReport report{pairing_.counts(), {}};
        if (s_.outlet) {
            s_.outlet->counts(pairing_.counts());
            report.sent = s_.outlet->finish();
        }
        if (json()) {
            append_json_latency(out, o_, ending);
            append_json_trace_ledger(out, o_, ending);
            out.resize(out.size() - 2); // "}", and the end of the line
            append_report(out, report);
            out += "}\n";
        }
        if (s_.report) *s_.report = std::move(report);
    }

  private:
    [[nodiscard]] bool json() const { return o_.view.format == Format::json; }

    [[nodiscard]] telemetry::Phase phase_of(const Shown &shown) const {
        switch (shown.event.place->kind) {
        case ProbeKind::usdt: return telemetry::Phase::by_name;
        case ProbeKind::tracepoint:
        case ProbeKind::raw_tp: return telemetry::Phase::point;
        default: break;
        }
        if (!shown.is_result) return telemetry::Phase::start;
        return o_.view.calls ? telemetry::Phase::end : telemetry::Phase::whole;
    }

    void hand_out(std::string &out) {
        for (const Span &span : made_) {
            if (s_.outlet) s_.outlet->add(span);
            if (s_.show) json() ? line_json(out, span) : line_text(out, span);
        }
        made_.clear();
    }

    [[nodiscard]] static uint64_t number(const Span &span, std::string_view key) {
        const telemetry::Value *value = span.find(key);
        const auto *n = value ? std::get_if<int64_t>(value) : nullptr;
        return n ? static_cast<uint64_t>(*n) : 0;
    }

    void line_text(std::string &out, const Span &span) {
        append(out, "[{}] ", render::rfc3339(span.start).substr(0, 23));
        const telemetry::Value *comm = span.find(kComm);
        const auto *name = comm ? std::get_if<std::string>(comm) : nullptr;
        render::append_comm(out, name ? std::string_view(*name) : std::string_view());
        append(out, "[{}]: ", number(span, kPid));
        render::append_printable(out, span.name);
        out += ' ';
        if (span.find("rawbpf.unpaired"))
            out += "(no end)";
        else if (span.end > span.start)
            append_duration(out, span.end - span.start);
        else
            out += "(a point)";
        if (span.kind != telemetry::SpanKind::internal) append(out, " {}", word(span.kind));
        if (span.status == telemetry::Status::error) out += " ERROR";
        append(out, " trace={}", hex_text(std::span(span.trace_id).first<kShownId>()));
        for (const telemetry::Attribute &one : span.attributes) {
            if (one.key == kPid || one.key == kThread || one.key == kComm || one.key == "rawbpf.unpaired") continue;
            out += ' ';
            render::append_printable(out, one.key);
            out += '=';
            std::string text;
            append_value_json(text, one.value); // quoted where it is a text, whatever bytes it has
            out += text;
        }
        out += '\n';
    }

    // Where this build has no JSON, texts are quoted as they are, but for what disturbs a terminal.
    static void append_value_json(std::string &out, const telemetry::Value &value) {
        if (const auto *text = std::get_if<std::string>(&value)) {
            if (render::writes_json()) return render::append_json(out, *text);
            out += '"';
            render::append_printable(out, *text);
            out += '"';
        }
        if (const auto *number = std::get_if<int64_t>(&value)) {
            const bool exact = *number <= kExact && *number >= -kExact;
            append(out, "{1}{0}{1}", *number, exact ? "" : "\"");
        }
        if (const auto *truth = std::get_if<bool>(&value)) out += *truth ? "true" : "false";
        if (const auto *real = std::get_if<double>(&value)) { // JSON has no NaN
            if (*real - *real == 0)
                append(out, "{}", *real);
            else
                out += "null";
        }
    }

    void line_json(std::string &out, const Span &span) {
        render::JsonLine line(out, "span");
        const uint64_t t_ns = span.start > o_.run.start_wall_ns ? span.start - o_.run.start_wall_ns : 0;
        line.text("time", render::rfc3339(span.start)).number("t_ns", t_ns);
        line.text("trace_id", hex_text(span.trace_id)).text("span_id", hex_text(span.span_id));
        line.text_or_null("parent_id", telemetry::is_set(span.parent) ? hex_text(span.parent) : std::string());
        line.text("name", span.name).text("kind", word(span.kind)).number("duration_ns", span.end - span.start);
        line.text("status", word(span.status));
        render::JsonObject attributes(line.raw("attributes"));
        for (const telemetry::Attribute &one : span.attributes) append_value_json(attributes.key(one.key), one.value);
    }

    static void append_report(std::string &out, const SpanReport &report) {
        out += ",\"spans\":";
        render::JsonObject spans(out);
        const telemetry::PairingCounts &p = report.pairing;
        spans.number("made", p.made()).number("paired", p.paired + p.wholes).number("points", p.points);
        spans.number("expired", p.expired).number("starts_dropped", p.dropped).number("ends_alone", p.orphans);
        spans.number("ignored", p.ignored);
        if (!report.sent) {
            spans.null("export");
            return;
        }
        const telemetry::ExportReport &sent = *report.sent;
        render::JsonObject object(spans.raw("export"));
        object.number("sent", sent.sent).number("rejected", sent.rejected).number("dropped", sent.dropped);
        {
            render::JsonObject failed(object.raw("failed"));
            for (const auto &[reason, n] : sent.failed) failed.number(reason, n);
        }
        object.number("requests", sent.requests).number("retries", sent.retries);
    }

    static constexpr std::string_view kComm = "process.executable.name", kPid = "process.pid", kThread = "thread.id";

    const SpanOptions &s_;
    telemetry::Pairing pairing_;
    std::vector<Span> made_;
    std::vector<Decoded> values_;    // of the event at hand
    std::vector<std::string> texts_; // and what is made of them
    std::vector<telemetry::Argument> arguments_;
    Decoded result_;
    std::string result_text_, error_;
    uint64_t next_tick_ = 0;
};

} // namespace

uint64_t SpanReport::lost() const { return pairing.dropped + (sent ? sent->lost() : 0); }

std::string SpanReport::text() const {
    using render::grouped;
    std::string out = format("{} span{}", grouped(pairing.made()), pairing.made() == 1 ? "" : "s");
    if (pairing.expired) append(out, ", {} of them without an end", grouped(pairing.expired));
    if (pairing.orphans) append(out, "; {} ends without a start", grouped(pairing.orphans));
    if (pairing.ignored) append(out, "; {} events that neither begin nor end one", grouped(pairing.ignored));
    if (pairing.dropped) append(out, "; {} starts forgotten: too many were open", grouped(pairing.dropped));
    if (!sent) return out;
    return out + "; " + sent->text();
}

bool makes_spans(const ProbeSite &place) {
    if (place.kind != ProbeKind::usdt) return true;
    telemetry::ProbeEvent event;
    event.provider = place.category;
    event.name = place.function;
    return telemetry::meaning_of(event).role != telemetry::Role::none;
}

std::unique_ptr<Sink> make_spans(SinkOptions options, const SpanOptions &spans) {
    return std::make_unique<Spans>(options, spans);
}

} // namespace rawbpf::inline v0::trace
