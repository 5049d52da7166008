// Spans on the command line: `--spans`, `--otlp`, `--prometheus` of `rawbpf trace` and `rawbpf usdt trace`.
//
// Everything that can be wrong with an address is found before anything is attached; that nobody listens there is no such thing:
// a collector may be restarted while a trace goes on, so spans wait in a bounded queue, and what had to be dropped is in the
// ledger and in the exit status.
#include "cli/trace_export.h"

#include <algorithm>
#include <cstdlib>

#include "cli/console.h"
#include "cli/lab.h"
#include "cli/running.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr uint64_t kLastTryNs = 5'000'000'000; // what waits at the end is given up after so long

std::string first_line(const std::string &path) {
    auto text = sys::read_file(path);
    return text ? text->substr(0, text->find('\n')) : std::string();
}

// Variables for the address are passed over where --otlp names another.
telemetry::Environment environment(bool with_endpoint) {
    return [with_endpoint](std::string_view name) -> std::optional<std::string> {
        if (!with_endpoint && name.ends_with("ENDPOINT")) return std::nullopt;
        const char *value = std::getenv(std::string(name).c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
    };
}

// What OpenTelemetry's detectors find: https://opentelemetry.io/docs/specs/semconv/resource/
std::vector<telemetry::Attribute> detected(const Arguments &a, const SpanIds &ids) {
    std::vector<telemetry::Attribute> out;
    std::string service = "unknown_service";
    if (!a.workload().empty())
        service = render::base_name(a.workload()[0]);
    else if (const std::vector<int> pids = a.pids(ids.pid); pids.size() == 1)
        if (std::string comm = first_line(format("/proc/{}/comm", pids[0])); !comm.empty()) service = std::move(comm);
    out.push_back({"service.name", std::move(service)});
    if (std::string host = first_line("/proc/sys/kernel/hostname"); !host.empty()) out.push_back({"host.name", std::move(host)});
#if defined(__x86_64__)
    out.push_back({"host.arch", std::string("amd64")});
#elif defined(__aarch64__)
    out.push_back({"host.arch", std::string("arm64")});
#endif
    out.push_back({"os.type", std::string("linux")});
    return out;
}

} // namespace

bool wants_spans(const Arguments &a, const SpanIds &ids) { return a.has(ids.spans) || a.has(ids.otlp) || a.has(ids.prometheus); }

Result<void> check_spans(const Arguments &a, const SpanIds &ids) {
    const std::string_view hint = "--spans, --otlp URL or --prometheus ADDR";
    if (a.has(ids.encoding) && !a.has(ids.otlp))
        return wrong_usage("--otlp-encoding says how --otlp sends, which isn't there", "--otlp URL");
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

Result<void> check_span_places(const std::vector<trace::Place> &places) {
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
    if (a.has(ids.otlp)) {
        const std::string_view url = a.text(ids.otlp);
        const bool named = url != "env";
        telemetry::Settings settings = TRY(telemetry::settings_from(environment(!named)));
        if (named) settings.endpoint = TRY_IN(telemetry::traces_endpoint(url), "--otlp");
        if (a.has(ids.encoding))
            settings.encoding = a.text(ids.encoding) == "json" ? telemetry::Encoding::json : telemetry::Encoding::protobuf;
        if (settings.encoding == telemetry::Encoding::json && !render::writes_json())
            return Unexpected(make_error(Errc::unsupported, "this build writes no JSON", "--otlp-encoding protobuf"));
        for (const std::string &warning : settings.warnings) out->note(warning);
        out->resource_ = telemetry::make_resource(detected(a, ids), settings, RAWBPF_VERSION);
        out->settings_ = std::move(settings);
    }
    if (a.has(ids.prometheus)) out->listen_ = TRY_IN(telemetry::parse_listen(a.text(ids.prometheus)), "--prometheus");
    if (out->settings_ || out->listen_) {
        const std::string self = own_path();
        out->outlets_ = TRY_IN(telemetry::load_outlets(self.substr(0, self.rfind('/')), RAWBPF_VERSION), "{}",
                               out->settings_ ? "--otlp" : "--prometheus");
        if (out->settings_ && out->settings_->endpoint.tls && !out->outlets_->https)
            return Unexpected(make_error(Errc::unsupported, "this build speaks no TLS, which https:// asks for",
                                         "send to a collector on this machine by http://"));
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
    if (settings_) {
        delivery_ = TRY(outlets_->open_delivery(*settings_, resource_, RAWBPF_VERSION, {}));
        note(format("spans go to {}", settings_->endpoint.url()));
    }
    return {};
}

void SpanRun::note(std::string_view text) const {
    if (!quiet_) say(format("{}: {}\n", who_, printable_lines(text)));
}

void SpanRun::add(const telemetry::Span &span) {
    if (scrapes_) scrapes_->add(span);
    if (delivery_) (void)delivery_->add(span); // one that is dropped is counted there
}

void SpanRun::counts(const telemetry::PairingCounts &counts) {
    if (!scrapes_) return;
    std::map<std::string, uint64_t> lost{{"ring full", lost_events_},
                                         {"start forgotten", counts.dropped},
                                         {"end missed", counts.expired},
                                         {"start missed", counts.orphans}};
    if (delivery_) {
        const telemetry::ExportReport report = delivery_->report();
        lost["queue full"] = report.dropped;
        lost["refused by the receiver"] = report.rejected;
        for (const auto &[reason, n] : report.failed) lost[reason] += n;
    }
    scrapes_->set_lost(std::move(lost));
}

std::optional<telemetry::ExportReport> SpanRun::finish() {
    if (!delivery_) return std::nullopt;
    return delivery_->stop(kLastTryNs);
}

std::string SpanRun::ledger_text() const { return format("{}: {}\n", who_, report_.text()); }

int SpanRun::status() const {
    const uint64_t lost = report_.lost();
    if (lost == 0) return 0;
    const std::string_view problem = report_.sent ? std::string_view(report_.sent->last_problem) : std::string_view();
    return complain(who_,
                    make_error(Errc::io,
                               format("{} of {} spans were lost", render::grouped(lost),
                                      render::grouped(report_.pairing.made() + report_.pairing.dropped)),
                               std::string(problem)),
                    1);
}

} // namespace rawbpf::inline v0::cli
