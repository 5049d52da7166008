// Sends spans to a receiver that tests/export/run keeps. usage: otlp-send URL json|protobuf SPANS; prints the report.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "programs/export/background.h"
#include "programs/export/http.h"
#include "runtime/sys/clock.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    auto endpoint = traces_endpoint(argv[1]);
    if (!endpoint) return std::fprintf(stderr, "%s\n", endpoint.error().message().c_str()), 2;
    auto ids = random_ids(), jitter = random_ids();
    auto transport = http_transport(*endpoint, {{"x-test", "yes"}}, "test");
    if (!ids || !jitter || !transport) return 1;
    ExporterOptions options;
    options.encoding = std::strcmp(argv[2], "json") == 0 ? Encoding::json : Encoding::protobuf;
    options.first_retry_ns = 10'000'000;
    options.timeout_ns = 2'000'000'000;
    Resource resource;
    resource.attributes = {{"service.name", std::string("send")}};
    Exporter exporter(resource, **transport, **jitter, options, sys::monotonic_ns);
    Background background(exporter);
    for (int i = 0; i < std::atoi(argv[3]); ++i) {
        Span span;
        span.trace_id = make_trace_id(**ids);
        span.span_id = make_span_id(**ids);
        span.name = "work";
        span.start = sys::realtime_ns();
        span.end = span.start + 1000;
        (void)background.add(std::move(span));
    }
    const ExportReport r = background.stop(3'000'000'000);
    std::printf("added %llu sent %llu rejected %llu dropped %llu lost %llu retries %llu problem %s\n",
                static_cast<unsigned long long>(r.added), static_cast<unsigned long long>(r.sent),
                static_cast<unsigned long long>(r.rejected), static_cast<unsigned long long>(r.dropped),
                static_cast<unsigned long long>(r.lost()), static_cast<unsigned long long>(r.retries), r.last_problem.c_str());
    return r.complete() ? 0 : 1;
}
