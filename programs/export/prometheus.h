// Calls, errors and durations as Prometheus reads them: the text exposition format, version 0.0.4. PURE.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "programs/export/span.h"

namespace rawbpf::inline v0::telemetry {

/// Upper bounds in seconds; one bucket more, without a bound, stands behind them.
inline constexpr std::array<double, 17> kBuckets = {1e-6, 5e-6,   1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3,
                                                    1e-2, 2.5e-2, 5e-2, 0.1,  0.25, 0.5,  1,    10};

/// One name's counters.
struct Series {
    uint64_t calls = 0, errors = 0;
    uint64_t duration_ns = 0;                            ///< of all timed calls together
    std::array<uint64_t, kBuckets.size() + 1> buckets{}; ///< each call with a duration in one of them: not cumulative
};

/// Counters by span's name and kind. Thread-compatible; bounded: names beyond `most` go into one that is called "other".
class Metrics {
  public:
    explicit Metrics(size_t most = 1000) : most_(most) {}
    void add(const Span &span);
    [[nodiscard]] const std::map<std::pair<std::string, SpanKind>, Series> &series() const { return series_; }

  private:
    size_t most_;
    std::map<std::pair<std::string, SpanKind>, Series> series_;
};

/// `lost`: what the ledger counts by reason, for rawbpf_lost_total.
[[nodiscard]] std::string prometheus_text(const Metrics &metrics, const std::map<std::string, uint64_t> &lost = {});

} // namespace rawbpf::inline v0::telemetry
