// The exporter: probes' events paired to spans, encoded and sent to a receiver on this machine, as `rawbpf usdt trace --otlp`
// does it.
//
// Producer and exporter share one core, as they do on a board; the receiver is another process, on another core where there is
// one. It is cpp-httplib's server and throws away what it has read. The figure is how many spans are sent in a second: of a
// core's time (what the sender used, whoever else was running), and by the clock.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define CPPHTTPLIB_NO_EXCEPTIONS 1
#include <httplib.h>

#include "programs/export/outlets.h"
#include "programs/export/pairing.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "tests/bench/bench.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

constexpr uint64_t kSpans = 100'000;
constexpr int kRounds = 5;
constexpr double kMark = 50'000; // spans a second

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

// Says its port through the pipe, and ends with us.
[[noreturn]] void receive(int pipe) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(1);
    httplib::Server server;
    server.new_task_queue = [] { return new httplib::ThreadPool(1); };
    server.set_keep_alive_max_count(1'000'000);
    server.Post("/v1/traces", [](const httplib::Request &, httplib::Response &response) {
        response.set_content("", "application/x-protobuf");
    });
    const int port = server.bind_to_any_port("127.0.0.1");
    if (write(pipe, &port, sizeof port) != sizeof port) std::_Exit(1);
    server.listen_after_bind();
    std::_Exit(1);
}

struct Rates {
    double by_clock = 0, by_core = 0; ///< spans a second
    uint64_t lost = 0;
};

void probe(Pairing &pairing, std::vector<Span> &out, std::string_view name, std::span<const Argument> arguments) {
    ProbeEvent event;
    event.provider = "go";
    event.name = name;
    event.pid = event.tid = 4321;
    event.comm = "service";
    event.time = sys::realtime_ns();
    event.arguments = arguments;
    pairing.event(event, out);
}

Rates send(int port, Encoding encoding) {
    Settings settings;
    settings.endpoint = {false, "127.0.0.1", static_cast<uint16_t>(port), "/v1/traces"};
    settings.encoding = encoding;
    Resource resource;
    resource.attributes = {{"service.name", std::string("bench")}, {"host.name", std::string("bench")}};
    auto delivery = open_delivery(settings, resource, "bench");
    auto ids = random_ids();
    if (!delivery || !ids) return {};
    Pairing pairing(**ids);
    const Argument query[] = {{"query", std::string_view("SELECT * FROM users WHERE id = 42 AND name = 'bob'")}};
    const Argument end[] = {{"error", int64_t{0}}};
    std::vector<Span> made;
    const uint64_t cpu = sys::process_cpu_ns(), start = sys::monotonic_ns();
    for (uint64_t i = 0; i < kSpans; ++i) {
        if (i % 64 == 0) // the queue is the exporter's, and it drops: here the events wait for it instead
            while ((*delivery)->report().waiting > 8192) std::this_thread::sleep_for(std::chrono::microseconds(200));
        probe(pairing, made, "sql_query_start", query);
        probe(pairing, made, "sql_query_end", end);
        for (Span &span : made) (void)(*delivery)->add(std::move(span));
        made.clear();
    }
    const ExportReport report = (*delivery)->stop(30'000'000'000);
    Rates out;
    const auto rate = [](uint64_t ns) { return static_cast<double>(kSpans) * 1e9 / static_cast<double>(ns); };
    out.by_clock = rate(sys::monotonic_ns() - start);
    out.by_core = rate(sys::process_cpu_ns() - cpu);
    out.lost = kSpans - report.sent;
    return out;
}

} // namespace

int main() {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const pid_t receiver = fork();
    if (receiver == 0) receive(ends[1]);
    int port = 0;
    if (receiver < 0 || read(ends[0], &port, sizeof port) != sizeof port || port <= 0) return 1;
    pin(0);
    for (const auto &[encoding, name] : {std::pair(Encoding::protobuf, "protobuf"), std::pair(Encoding::json, "json")}) {
        if (encoding == Encoding::json && !render::writes_json()) continue;
        std::vector<double> by_clock, by_core;
        uint64_t lost = 0;
        for (int i = 0; i < bench::rounds(kRounds); ++i) {
            const Rates rates = send(port, encoding);
            by_clock.push_back(rates.by_clock);
            by_core.push_back(rates.by_core);
            lost += rates.lost;
        }
        const bench::Figure core = bench::figure(by_core), clock = bench::figure(by_clock), mark{kMark, kMark, kMark};
        bench::row(format("export, {}: spans a second of one core, mark 50,000", name), "spans/s", core, mark,
                   bench::Mark::at_least, 1);
        bench::row(format("export, {}: by the clock, sent from one core, mark 50,000", name), "spans/s", clock, mark,
                   bench::Mark::at_least, 1);
        bench::row(format("export, {}: spans lost", name), "spans",
                   {static_cast<double>(lost), static_cast<double>(lost), static_cast<double>(lost)}, bench::Mark::at_most, 0);
    }
    kill(receiver, SIGKILL);
    waitpid(receiver, nullptr, 0);
    return 0;
}
