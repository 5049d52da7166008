// What the tracing commands do with spans: options, whom they are sent to, what the ledger says of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/built.h"
#include "cli/options.h"
#include "cli/otlp.h"
#include "programs/trace/spans.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kSpansOption{.name = "spans",
                                     .help = "show spans instead of events. A span is a start and its end in the same thread (in "
                                             "Go: goroutine), or a function and its return",
                                     .section = "Spans",
                                     .part = Part::exporting};
inline constexpr Option kSpanTimeoutOption{
    .name = "span-timeout",
    .kind = OptionKind::seconds,
    .argument = "TIME",
    .help = "if the end of a span hasn't come after this time, the span is shown without a duration",
    .fallback = "60",
    .part = Part::exporting};
inline constexpr Option kKeepLiteralsOption{
    .name = "keep-literals",
    .help = "keep the literals of SQL and the queries of URLs in spans; otherwise they are replaced",
    .part = Part::exporting};
inline constexpr Option kOtlpOption{.name = "otlp",
                                    .kind = OptionKind::text,
                                    .argument = "URL",
                                    .help = "send spans to this OpenTelemetry receiver, such as http://localhost:4318; env: the "
                                            "one that OTEL_EXPORTER_OTLP_ENDPOINT names. Add --spans to show them as well",
                                    .part = Part::exporting};
inline constexpr Option kPrometheusOption{.name = "prometheus",
                                          .kind = OptionKind::text,
                                          .argument = "ADDR",
                                          .help = "serve calls, errors and durations by the name of the span, for Prometheus to "
                                                  "scrape at http://ADDR/metrics: PORT (this machine only), HOST:PORT, or :PORT",
                                          .part = Part::exporting};

/// Where a command's table has these rows, and those that they don't go with.
struct SpanIds {
    Id spans, timeout, keep_literals, otlp, encoding, prometheus, format, count, graph, stack, quiet, pid;
    [[nodiscard]] constexpr OtlpIds sending() const { return {otlp, encoding, quiet, pid}; }
};
template <size_t N> consteval SpanIds span_ids(const Option (&table)[N]) {
    return {find(table, "spans"),         find(table, "span-timeout"), find(table, "keep-literals"), find(table, "otlp"),
            find(table, "otlp-encoding"), find(table, "prometheus"),   find(table, "format"),        find(table, "count"),
            find(table, "graph"),         find(table, "stack"),        find(table, "quiet"),         find(table, "pid")};
}

/// Whether the command line asks for spans, shown or sent.
[[nodiscard]] inline bool wants_spans(const Arguments &a, const SpanIds &ids) {
    return has(Part::exporting) && (a.has(ids.spans) || a.has(ids.otlp) || a.has(ids.prometheus));
}
/// Errors: invalid_argument for options that don't go together.
[[nodiscard]] Result<void> check_spans(const Arguments &a, const SpanIds &ids);
/// Errors: invalid_argument when none of the places can make a span.
[[nodiscard]] Result<void> check_span_places(const std::vector<trace::ProbeSite> &places);

/// A run's spans: shown, sent, counted.
class SpanRun final : public trace::SpanOutlet {
  public:
    /// Reads options and environment; nothing is opened yet. Errors: invalid_argument (a URL, an address), unsupported (no HTTP,
    /// no JSON in this build).
    [[nodiscard]] static Result<std::unique_ptr<SpanRun>> prepare(const Arguments &a, const SpanIds &ids, std::string who);
    /// Opens what is wanted, with its threads: to be called when nothing is forked any more. Errors: those of
    /// open_scrape_point().
    [[nodiscard]] Result<void> start();
    [[nodiscard]] const trace::SpanOptions &options() const { return options_; }

    /// The line of the ledger for people.
    [[nodiscard]] std::string ledger_text() const;
    /// At the end: 0, or when spans were lost 1, after saying so.
    [[nodiscard]] int status() const;

    void add(const telemetry::Span &span) override;
    void counts(const telemetry::PairingCounts &counts) override;
    [[nodiscard]] bool is_scraped() const override { return scrapes_ != nullptr; }
    void lost_events(uint64_t n) override { lost_events_ = n; }
    std::optional<telemetry::ExportReport> finish() override;

  private:
    explicit SpanRun(std::string who) : who_(std::move(who)) {}
    void note(std::string_view text) const;

    std::string who_;
    bool quiet_ = false;
    uint64_t lost_events_ = 0;
    trace::SpanOptions options_;
    trace::SpanReport report_;
    std::unique_ptr<telemetry::IdSource> ids_;
    std::optional<OtlpSender> sender_; ///< with --otlp
    std::optional<telemetry::ListenAddress> listen_;
    const telemetry::Outlets *outlets_ = nullptr; ///< with --prometheus
    std::unique_ptr<telemetry::ScrapePoint> scrapes_;
};

} // namespace rawbpf::inline v0::cli
