// `--otlp URL`. Every mistake in an address is found before anything is attached. A receiver that doesn't answer is no
// mistake: a collector may restart while a trace goes on, so spans wait in a bounded queue; the ledger and the exit status
// report the spans that had to be dropped.
#include "cli/otlp.h"

#include <algorithm>
#include <cstdlib>

#include "asm/machines.h"
#include "cli/console.h"
#include "cli/own_folder.h"
#include "programs/render/json_line.h"
#include "programs/render/text.h"
#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr uint64_t kLastTryNs = 5'000'000'000; // what waits at the end is given up after so long
// From Ctrl-C on: for room in the queue, and for what is in it, while probes are taken away; at least so long where that took
// longer.
constexpr uint64_t kPatienceNs = 1'500'000'000, kPatienceForRoomNs = 1'000'000'000, kLeastNs = 1'000'000'000;

// Variables for the address are passed over where --otlp names another.
telemetry::Environment environment(bool with_endpoint) {
    return [with_endpoint](std::string_view name) -> std::optional<std::string> {
        if (!with_endpoint && name.ends_with("ENDPOINT")) return std::nullopt;
        const char *value = std::getenv(std::string(name).c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
    };
}

// What OpenTelemetry's detectors find: https://opentelemetry.io/docs/specs/semconv/resource/
std::vector<telemetry::Attribute> detected(const Arguments &a, const OtlpIds &ids) {
    std::vector<telemetry::Attribute> out;
    std::string service = "unknown_service";
    if (!a.workload().empty())
        service = render::base_name(a.workload()[0]);
    else if (const std::vector<int> pids = a.pids(ids.pid); pids.size() == 1)
        if (std::string comm = sys::first_line(format("/proc/{}/comm", pids[0])); !comm.empty()) service = std::move(comm);
    out.push_back({"service.name", std::move(service)});
    if (std::string host = sys::first_line("/proc/sys/kernel/hostname"); !host.empty())
        out.push_back({"host.name", std::move(host)});
    if (kHostArch != Arch::other) out.push_back({"host.arch", std::string(kHostArch == Arch::x86_64 ? "amd64" : kHost.name)});
    out.push_back({"os.type", std::string("linux")});
    return out;
}

} // namespace

Result<const telemetry::Outlets *> outlets_for(std::string_view option) {
    return TRY_IN(telemetry::load_outlets(own_folder(), RAWBPF_VERSION), "{}", option);
}

Result<OtlpSender> OtlpSender::prepare(const Arguments &a, const OtlpIds &ids, std::string who) {
    OtlpSender out;
    out.who_ = std::move(who);
    out.quiet_ = a.has(ids.quiet);
    const std::string_view url = a.text(ids.otlp);
    const bool named = url != "env";
    out.settings_ = TRY(telemetry::settings_from(environment(!named)));
    if (named) out.settings_.endpoint = TRY_IN(telemetry::traces_endpoint(url), "--otlp");
    if (a.has(ids.encoding))
        out.settings_.encoding = a.text(ids.encoding) == "json" ? telemetry::Encoding::json : telemetry::Encoding::protobuf;
    if (out.settings_.encoding == telemetry::Encoding::json && !render::writes_json())
        return Unexpected(make_error(Errc::unsupported, "this build writes no JSON", "--otlp-encoding protobuf"));
    if (!out.quiet_)
        for (const std::string &warning : out.settings_.warnings) say(format("{}: {}\n", out.who_, warning));
    out.resource_ = telemetry::make_resource(detected(a, ids), out.settings_, RAWBPF_VERSION);
    out.outlets_ = TRY(outlets_for("--otlp"));
    if (out.settings_.endpoint.tls && !out.outlets_->https)
        return Unexpected(make_error(Errc::unsupported, "this build speaks no TLS, which https:// asks for",
                                     "send to a collector on this machine by http://"));
    return out;
}

Result<void> OtlpSender::start() {
    pause_ = TRY(sys::epoll_create());
    delivery_ = TRY(outlets_->open_delivery(settings_, resource_, RAWBPF_VERSION, {}));
    if (!quiet_) say(format("{}: spans go to {}\n", who_, settings_.endpoint.url()));
    return {};
}

void OtlpSender::add(const telemetry::Span &span) {
    // Events wait in their backlog meanwhile, so nothing is lost by being late.
    while (stop_wanted < 2 && stopped_for_ < kPatienceForRoomNs && delivery_->worth_waiting()) {
        const uint64_t before = sys::monotonic_ns();
        std::vector<epoll_event> none(1);
        if (!sys::epoll_wait(pause_.get(), none, 1)) break;
        if (stop_wanted) stopped_for_ += sys::monotonic_ns() - before;
    }
    (void)delivery_->add(span);
}

telemetry::ExportReport OtlpSender::finish() {
    const auto patience = [&] {
        if (stop_wanted == 0) return kLastTryNs;
        if (stop_wanted > 1) return uint64_t{0};
        const uint64_t since = sys::monotonic_ns() - first_stop_ns();
        return since < kPatienceNs ? std::max(kPatienceNs - since, kLeastNs) : kLeastNs;
    };
    int stops = stop_wanted;
    delivery_->begin_stop(patience());
    while (!delivery_->stopped()) {
        std::vector<epoll_event> none(1);
        if (!sys::epoll_wait(pause_.get(), none, 2)) break;
        if (stop_wanted == stops) continue;
        stops = stop_wanted;
        delivery_->begin_stop(patience());
    }
    return delivery_->stop(patience());
}

int lost_spans(std::string_view who, uint64_t lost, uint64_t made, std::string_view problem) {
    if (lost == 0) return 0;
    return complain(std::string(who),
                    make_error(Errc::io, format("{} of {} spans were lost", render::grouped(lost), render::grouped(made)),
                               std::string(problem)),
                    1);
}

} // namespace rawbpf::inline v0::cli
