// Spans on the command line: `--spans`, `--otlp`, `--prometheus` of `rawbpf trace` and `rawbpf usdt trace`.
#include "cli/trace_export.h"

#include <algorithm>

#include "cli/console.h"
#include "cli/running.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {

Result<void> check_spans(const Arguments &a, const SpanIds &ids) {
    const std::string_view hint = "--spans, --otlp URL or --prometheus ADDR";
    TRY(check_otlp(a, ids.sending()));
    if (!wants_spans(a, ids)) {
        if (a.has(ids.timeout)) return wrong_usage("--span-timeout is about spans, and none are asked for", std::string(hint));
        if (a.has(ids.keep_literals))
            return wrong_usage("--keep-literals is about spans, and none are asked for", std::string(hint));
        return {};
    }
    if (a.has(ids.count)) return wrong_usage("--count keeps no times, of which spans are made", "leave it out");
    if (a.has(ids.graph))
        return wrong_usage("--graph shows calls as they begin, and a span is shown when it is complete", "leave it out");
    if (a.has(ids.stack)) return wrong_usage("spans have no stacks", "leave --stack out");
    if (const std::string_view shape = a.text(ids.format); shape != "text" && shape != "json")
        return wrong_usage(format("spans are shown as text or json, not as {}", shape), "without --spans, events are shown so");
    if (a.seconds(ids.timeout) > 86400) return wrong_usage("--span-timeout is a day at most");
    return {};
}

Result<void> check_span_places(const std::vector<trace::ProbeSite> &places) {
    if (std::any_of(places.begin(), places.end(), trace::makes_spans)) return {};
    return wrong_usage("none of these probes begins or ends a span",
                       "spans are made of probes named X__start and X__done, X_start and X_end, X__entry and X__return, of "
                       "functions, and of the known ones (rawbpf usdt list shows what there is)");
}

Result<std::unique_ptr<SpanRun>> SpanRun::prepare(const Arguments &a, const SpanIds &ids, std::string who) {
    std::unique_ptr<SpanRun> out(new SpanRun(std::move(who)));
    out->quiet_ = a.has(ids.quiet);
    out->options_.pairing.expire_ns = static_cast<uint64_t>(a.seconds(ids.timeout) * 1e9);
    out->options_.pairing.conventions.keep_literals = a.has(ids.keep_literals);
    out->options_.show = a.has(ids.spans);
    out->options_.outlet = out.get();
    out->options_.report = &out->report_;
    if (a.has(ids.otlp)) out->sender_ = TRY(OtlpSender::prepare(a, ids.sending(), out->who_));
    if (a.has(ids.prometheus)) {
        out->listen_ = TRY_IN(telemetry::parse_listen(a.text(ids.prometheus)), "--prometheus");
        out->outlets_ = TRY(outlets_for("--prometheus"));
    }
    out->ids_ = TRY(telemetry::random_ids());
    out->options_.ids = out->ids_.get();
    return out;
}

Result<void> SpanRun::start() {
    if (listen_) {
        scrapes_ = TRY_IN(outlets_->open_scrape_point(*listen_), "--prometheus");
        note(format("to be scraped at {}", scrapes_->url()));
    }
    if (sender_) TRY(sender_->start());
    return {};
}

void SpanRun::note(std::string_view text) const {
    if (!quiet_) say(format("{}: {}\n", who_, text));
}

void SpanRun::add(const telemetry::Span &span) {
    if (scrapes_) scrapes_->add(span);
    if (sender_) sender_->add(span);
}

void SpanRun::counts(const telemetry::PairingCounts &counts) {
    if (!scrapes_) return;
    std::map<std::string, uint64_t> lost{{"ring full", lost_events_},
                                         {"start forgotten", counts.dropped},
                                         {"end missed", counts.expired},
                                         {"start missed", counts.orphans}};
    if (sender_) {
        const telemetry::ExportReport report = sender_->report();
        lost["queue full"] = report.dropped;
        lost["refused by the receiver"] = report.rejected;
        for (const auto &[reason, n] : report.failed) lost[reason] += n;
    }
    scrapes_->set_lost(std::move(lost));
}

std::optional<telemetry::ExportReport> SpanRun::finish() {
    if (!sender_) return std::nullopt;
    return sender_->finish();
}

std::string SpanRun::ledger_text() const { return format("{}: {}\n", who_, report_.text()); }

int SpanRun::status() const {
    const std::string_view problem = report_.sent ? std::string_view(report_.sent->last_problem) : std::string_view();
    return lost_spans(who_, report_.lost(), report_.pairing.made() + report_.pairing.dropped, problem);
}

} // namespace rawbpf::inline v0::cli
