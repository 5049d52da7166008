// Not the events are shown, but the spans that they make.
//
//      Shown --> ProbeEvent --> telemetry::Pairing --> Span --> a line (text or JSON), and SpanOutlet: sends them on
#pragma once

#include <memory>
#include <optional>

#include "programs/export/exporter.h"
#include "programs/export/pairing.h"
#include "programs/trace/sink.h"

namespace rawbpf::inline v0::trace {

/// Where spans go beside the output.
class SpanOutlet {
  public:
    virtual ~SpanOutlet() = default;
    virtual void add(const telemetry::Span &span) = 0;
    /// Called now and then.
    virtual void counts(const telemetry::PairingCounts &counts) = 0;
    /// Whether somebody may ask for counters while the trace goes on: then lost_events() is called about once a second.
    [[nodiscard]] virtual bool is_scraped() const { return false; }
    /// So many events never came.
    virtual void lost_events(uint64_t) {}
    /// No more will come: sends what waits. nullopt: nothing is sent anywhere, only counted.
    virtual std::optional<telemetry::ExportReport> finish() = 0;
};

/// For the ledger.
struct SpanReport {
    telemetry::PairingCounts pairing;
    std::optional<telemetry::ExportReport> sent; ///< where they were sent
    /// "12 spans (10 paired, 2 expired), 12 sent in 1 request; 3 lost: 3 connection refused", without a newline.
    [[nodiscard]] std::string text() const;
    /// Starts that were forgotten, and spans that no receiver has.
    [[nodiscard]] uint64_t lost() const;
};

struct SpanOptions {
    telemetry::PairingOptions pairing;
    telemetry::IdSource *ids = nullptr; ///< never nullptr in use
    bool show = true;                   ///< a line a span
    SpanOutlet *outlet = nullptr;
    SpanReport *report = nullptr; ///< filled at the end
};

/// Whether what fires there can be a span, or an end of one.
[[nodiscard]] bool makes_spans(const ProbeSite &place);
/// Format::text or json.
[[nodiscard]] std::unique_ptr<Sink> make_spans(SinkOptions options, const SpanOptions &spans);

} // namespace rawbpf::inline v0::trace
