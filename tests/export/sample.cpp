// Writes what tests/export/run gives to readers that we didn't write: one batch of spans in both encodings. usage: otlp-sample
// json|protobuf
#include <cstdio>
#include <cstring>
#include <vector>

#include "programs/export/otlp.h"
#include "programs/export/pairing.h"
#include "programs/export/prometheus.h"

using namespace rawbpf::telemetry;

namespace {

class Ids final : public IdSource {
  public:
    uint64_t next() override { return ++last_ * 0x0123456789abcdef; }

  private:
    uint64_t last_ = 0;
};

void at(Pairing &pairing, std::vector<Span> &out, std::string_view provider, std::string_view name, uint64_t ms,
        std::initializer_list<Argument> arguments) {
    ProbeEvent event;
    event.provider = provider;
    event.name = name;
    event.pid = event.tid = 4321;
    event.comm = "caf\xc3\xa9 \xff"; // not all of it is UTF-8
    event.time = 1'763'668'800'000'000'000 + ms * 1'000'000;
    event.arguments = {arguments.begin(), arguments.size()};
    pairing.event(event, out);
}

} // namespace

int main(int argc, char **argv) {
    const bool json = argc > 1 && std::strcmp(argv[1], "json") == 0;
    Ids ids;
    Pairing pairing(ids);
    std::vector<Span> spans;
    using Text = std::string_view;
    at(pairing, spans, "net_http", "server_request_start", 0, {{"method", Text("GET")}, {"path", Text("/load")}});
    at(pairing, spans, "postgresql", "query__start", 1, {{"query", Text("select \"a\\b\" from t where x = 'y'\n")}});
    at(pairing, spans, "postgresql", "query__done", 3, {});
    at(pairing, spans, "mine", "work__start", 4,
       {{"", int64_t{-5}}, {"real", 0.1}, {"yes", true}, {"empty", Text("")}, {"zero", int64_t{0}}});
    at(pairing, spans, "mine", "work__done", 5, {{"large", INT64_MIN}});
    at(pairing, spans, "net_http", "server_request_end", 9, {{"status", int64_t{503}}});
    at(pairing, spans, "tls", "handshake_start", 10, {{"is_client", int64_t{1}}});
    pairing.end(spans);
    spans[0].status = Status::ok;
    spans.back().status_message = "d\xc3\xa9j\xc3\xa0";
    spans.back().status = Status::error;
    Resource resource;
    resource.attributes = {{"service.name", std::string("sample")}, {"process.pid", int64_t{4321}}};
    resource.scope_version = "0.1";
    Metrics metrics;
    for (const Span &span : spans) metrics.add(span);
    const bool scrape = argc > 1 && std::strcmp(argv[1], "prometheus") == 0;
    const std::string out = scrape ? prometheus_text(metrics, {{"a \"reason\"\n", 1}})
                                   : otlp_request(json ? Encoding::json : Encoding::protobuf, resource, spans);
    return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 1;
}
