// Spans to an OpenTelemetry receiver: what --otlp and --otlp-encoding mean, in whichever command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/running.h"
#include "programs/export/outlets.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kOtlpEncodingOption{
    .name = "otlp-encoding",
    .kind = OptionKind::choice,
    .argument = "NAME",
    .help = "the encoding of the spans; by default the one that OTEL_EXPORTER_OTLP_PROTOCOL names, or else protobuf",
    .choices = "protobuf json",
    .part = Part::exporting};

/// Where a command's table has these rows.
struct OtlpIds {
    Id otlp, encoding, quiet, pid;
};
template <size_t N> consteval OtlpIds otlp_ids(const Option (&table)[N]) {
    return {find(table, "otlp"), find(table, "otlp-encoding"), find(table, "quiet"), find(table, "pid")};
}

/// --otlp-encoding without --otlp.
[[nodiscard]] inline Result<void> check_otlp(const Arguments &a, const OtlpIds &ids) {
    if (a.has(ids.encoding) && !a.has(ids.otlp))
        return wrong_usage("--otlp-encoding says how --otlp sends, which isn't there", "--otlp URL");
    return {};
}
/// The module with the HTTP library; `option` is what asks for it. Errors: load_outlets()'s.
[[nodiscard]] Result<const telemetry::Outlets *> outlets_for(std::string_view option);

class OtlpSender {
  public:
    /// Reads options and environment; nothing is opened yet. Errors: invalid_argument (a URL), unsupported (no HTTP, no TLS, no
    /// JSON in this build).
    [[nodiscard]] static Result<OtlpSender> prepare(const Arguments &a, const OtlpIds &ids, std::string who);
    /// Opens it, with its thread: to be called when nothing is forked any more.
    [[nodiscard]] Result<void> start();
    /// Waits for room as long as the receiver takes batches, but after Ctrl-C for a second in all. One that has no room then
    /// is dropped, and counted.
    void add(const telemetry::Span &span);
    [[nodiscard]] telemetry::ExportReport report() const { return delivery_->report(); }
    /// Sends what waits: for 5 seconds, for 1.5 from Ctrl-C on, or one where that is longer ago; after a second one not any more.
    telemetry::ExportReport finish();

  private:
    OtlpSender() = default;
    std::string who_;
    bool quiet_ = false;
    telemetry::Settings settings_;
    telemetry::Resource resource_;
    const telemetry::Outlets *outlets_ = nullptr;
    std::unique_ptr<telemetry::Delivery> delivery_;
    Fd pause_;                 ///< an epoll set with nothing in it: to wait a moment
    uint64_t stopped_for_ = 0; ///< ns waited since Ctrl-C
};

/// What is said at the end when spans were lost, with the exit status: 1; 0 when none was. `made`: with the lost ones.
[[nodiscard]] int lost_spans(std::string_view who, uint64_t lost, uint64_t made, std::string_view problem);

} // namespace rawbpf::inline v0::cli
