// A scrape is a snapshot of counters that only grow. A histogram's buckets are cumulative there: le="0.1" counts all calls up to
// 0.1 s, and le="+Inf" all of them (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// Spans without a length (starts whose ends never came, points in time) are calls, but in no bucket: they have no duration.
#include "programs/export/prometheus.h"

#include <algorithm>

#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {
namespace {

std::string_view word(SpanKind kind) {
    switch (kind) {
    case SpanKind::server: return "server";
    case SpanKind::client: return "client";
    case SpanKind::internal: break;
    }
    return "internal";
}

void append_head(std::string &out, std::string_view name, std::string_view type, std::string_view help) {
    append(out, "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

} // namespace

void Metrics::add(const Span &span) {
    std::pair<std::string, SpanKind> key(span.name, span.kind);
    if (!series_.contains(key) && series_.size() >= most_) key = {"other", SpanKind::internal};
    Series &one = series_[key];
    ++one.calls;
    if (span.status == Status::error) ++one.errors;
    if (span.end <= span.start) return;
    const uint64_t ns = span.end - span.start;
    one.duration_ns += ns;
    const auto bucket = std::lower_bound(kBuckets.begin(), kBuckets.end(), static_cast<double>(ns) / 1e9);
    ++one.buckets[static_cast<size_t>(bucket - kBuckets.begin())];
}

std::string prometheus_text(const Metrics &metrics, const std::map<std::string, uint64_t> &lost) {
    std::string out;
    const auto labels = [](const std::pair<std::string, SpanKind> &key) {
        std::string text = "span=";
        render::append_label(text, key.first);
        append(text, ",kind=\"{}\"", word(key.second));
        return text;
    };
    append_head(out, "rawbpf_calls_total", "counter", "Spans seen: calls, requests, queries.");
    for (const auto &[key, one] : metrics.series()) append(out, "rawbpf_calls_total{{{}}} {}\n", labels(key), one.calls);
    append_head(out, "rawbpf_errors_total", "counter", "Those of them that failed.");
    for (const auto &[key, one] : metrics.series()) append(out, "rawbpf_errors_total{{{}}} {}\n", labels(key), one.errors);
    append_head(out, "rawbpf_duration_seconds", "histogram", "How long they took, where start and end were seen.");
    for (const auto &[key, one] : metrics.series()) {
        const std::string text = labels(key);
        uint64_t so_far = 0;
        for (size_t i = 0; i < kBuckets.size(); ++i)
            append(out, "rawbpf_duration_seconds_bucket{{{},le=\"{}\"}} {}\n", text, kBuckets[i], so_far += one.buckets[i]);
        so_far += one.buckets.back();
        append(out, "rawbpf_duration_seconds_bucket{{{},le=\"+Inf\"}} {}\n", text, so_far);
        append(out, "rawbpf_duration_seconds_sum{{{}}} {}\n", text, static_cast<double>(one.duration_ns) / 1e9);
        append(out, "rawbpf_duration_seconds_count{{{}}} {}\n", text, so_far);
    }
    append_head(out, "rawbpf_lost_total", "counter", "Events and spans that were lost, by reason.");
    for (const auto &[reason, n] : lost) {
        out += "rawbpf_lost_total{reason=";
        render::append_label(out, reason);
        append(out, "}} {}\n", n);
    }
    return out;
}

} // namespace rawbpf::inline v0::telemetry
