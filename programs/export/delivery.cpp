// An exporter, its transport and its thread, in the order in which they must be destroyed: the thread first.
#include "programs/export/background.h"
#include "programs/export/http.h"
#include "programs/export/outlets.h"
#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::telemetry {
namespace {

class Sender final : public Delivery {
  public:
    Sender(Resource resource, std::unique_ptr<Transport> transport, std::unique_ptr<IdSource> jitter,
           const ExporterOptions &options)
        : transport_(std::move(transport)), jitter_(std::move(jitter)),
          exporter_(std::move(resource), *transport_, *jitter_, options, sys::monotonic_ns), background_(exporter_) {}
    bool add(Span span) override { return background_.add(std::move(span)); }
    [[nodiscard]] bool worth_waiting() const override { return exporter_.worth_waiting(); }
    [[nodiscard]] ExportReport report() const override { return exporter_.report(); }
    void begin_stop(uint64_t within_ns) override { background_.begin_stop(within_ns); }
    [[nodiscard]] bool stopped() const override { return background_.done(); }
    ExportReport stop(uint64_t within_ns) override { return background_.stop(within_ns); }

  private:
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<IdSource> jitter_; // the thread's own
    Exporter exporter_;
    Background background_;
};

} // namespace

Result<std::unique_ptr<Delivery>> open_delivery(const Settings &settings, Resource resource, std::string_view version,
                                                ExporterOptions options) {
    options.encoding = settings.encoding;
    options.timeout_ns = settings.timeout_ns;
    auto transport = TRY(http_transport(settings.endpoint, settings.headers, version));
    auto jitter = TRY(random_ids());
    return std::unique_ptr<Delivery>(
        std::make_unique<Sender>(std::move(resource), std::move(transport), std::move(jitter), options));
}

} // namespace rawbpf::inline v0::telemetry
