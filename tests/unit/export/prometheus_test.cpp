// Counters as a scrape; tests/export/run has promtool read it.
#include "programs/export/prometheus.h"

#include "tests/support/test.h"

using namespace rawbpf::telemetry;

namespace {

Span span(std::string name, uint64_t ns, SpanKind kind = SpanKind::server) {
    Span out;
    out.name = std::move(name);
    out.kind = kind;
    out.start = 1'000'000'000;
    out.end = out.start + ns;
    return out;
}
bool has(const std::string &text, std::string_view line) {
    return ("\n" + text).find("\n" + std::string(line) + "\n") != std::string::npos;
}

} // namespace

TEST_CASE("prometheus: calls, errors, cumulative buckets") {
    Metrics metrics;
    metrics.add(span("GET", 1000)); // a bound belongs to its bucket
    metrics.add(span("GET", 1001));
    Span failed = span("GET", 20'000'000'000);
    failed.status = Status::error;
    metrics.add(failed);
    metrics.add(span("GET", 0)); // no duration
    metrics.add(span("GET", 1000, SpanKind::client));
    const std::string text = prometheus_text(metrics, {{"queue full", 3}});
    CHECK(has(text, "# TYPE rawbpf_duration_seconds histogram"));
    CHECK(has(text, R"(rawbpf_calls_total{span="GET",kind="server"} 4)"));
    CHECK(has(text, R"(rawbpf_calls_total{span="GET",kind="client"} 1)"));
    CHECK(has(text, R"(rawbpf_errors_total{span="GET",kind="server"} 1)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_bucket{span="GET",kind="server",le="1e-06"} 1)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_bucket{span="GET",kind="server",le="5e-06"} 2)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_bucket{span="GET",kind="server",le="10"} 2)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_bucket{span="GET",kind="server",le="+Inf"} 3)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_count{span="GET",kind="server"} 3)"));
    CHECK(has(text, R"(rawbpf_duration_seconds_sum{span="GET",kind="server"} 20.000002001)"));
    CHECK(has(text, R"(rawbpf_lost_total{reason="queue full"} 3)"));
}

TEST_CASE("prometheus: hostile names stay within their quotes, and are bounded") {
    Metrics metrics(2);
    metrics.add(span("a\"\\\n} 1\n\xff", 5));
    CHECK(has(prometheus_text(metrics), "rawbpf_calls_total{span=\"a\\\"\\\\\\n} 1\\n\xef\xbf\xbd\",kind=\"server\"} 1"));
    for (int i = 0; i < 100; ++i) metrics.add(span("n" + std::to_string(i), 5));
    CHECK(metrics.series().size() == 3);
    CHECK(metrics.series().at({"other", SpanKind::internal}).calls == 99);
}
