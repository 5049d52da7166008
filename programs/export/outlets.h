// The two ways on which spans leave, each with its threads: to an OpenTelemetry receiver, and to whoever scrapes.
//
// They are in a module, rawbpf-otlp.so, that is loaded when a command asks for it: threads, the resolver and OpenSSL, which most
// commands have no use for, would cost every start of an executable that is linked with them 1.6 ms.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "programs/export/exporter.h"
#include "programs/export/settings.h"

namespace rawbpf::inline v0::telemetry {

/// An exporter with its connection and its thread.
class Delivery {
  public:
    virtual ~Delivery() = default;
    /// Never blocks. False: the queue is full, and the span is dropped and counted.
    virtual bool add(Span span) = 0;
    /// Whether it is full, and will have room in a moment: Exporter::worth_waiting().
    [[nodiscard]] virtual bool worth_waiting() const = 0;
    /// How it stands.
    [[nodiscard]] virtual ExportReport report() const = 0;
    /// What waits, the request under way too, is sent for at most so long from now; stopped() when that has ended. A second call
    /// may shorten it.
    virtual void begin_stop(uint64_t within_ns) = 0;
    [[nodiscard]] virtual bool stopped() const = 0;
    /// begin_stop(), and waits for its end. Then the report is final.
    virtual ExportReport stop(uint64_t within_ns) = 0;
};
// The functions of the module's; what is linked with it (tests, benchmarks) may call them.

/// To settings.endpoint. Nothing is sent yet: whether a receiver is there shows later. `options`: encoding and time-out are the
/// settings'. Errors: unsupported (no TLS), the errno of getrandom(2).
[[nodiscard]] Result<std::unique_ptr<Delivery>> open_delivery(const Settings &settings, Resource resource,
                                                              std::string_view version, ExporterOptions options = {});

/// A scrape endpoint for Prometheus: GET /metrics.
class ScrapePoint {
  public:
    virtual ~ScrapePoint() = default; ///< ends it; a scrape under way is answered
    virtual void add(const Span &span) = 0;
    /// What rawbpf_lost_total says from now on, by reason.
    virtual void set_lost(std::map<std::string, uint64_t> lost) = 0;
    /// "http://127.0.0.1:9464/metrics", with the port that it really has.
    [[nodiscard]] virtual std::string url() const = 0;
};
/// Errors: not_found or the errno when nobody can listen there: the port is taken, or the address isn't one of
/// this machine's.
[[nodiscard]] Result<std::unique_ptr<ScrapePoint>> open_scrape_point(const ListenAddress &at);

/// What the module has.
struct Outlets {
    const char *version = nullptr; ///< of the build that it belongs to
    bool https = false;
    Result<std::unique_ptr<Delivery>> (*open_delivery)(const Settings &, Resource, std::string_view, ExporterOptions) = nullptr;
    Result<std::unique_ptr<ScrapePoint>> (*open_scrape_point)(const ListenAddress &) = nullptr;
};
/// Loads the module, once and for good: from `folder`, that of the executable, or where it was installed. Errors: unsupported
/// when this build has none, or it isn't there, or it is another version's.
[[nodiscard]] Result<const Outlets *> load_outlets(const std::string &folder, std::string_view version);

} // namespace rawbpf::inline v0::telemetry
