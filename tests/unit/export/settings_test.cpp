// The environment variables of OpenTelemetry.
#include "programs/export/settings.h"

#include <map>

#include "programs/render/json_line.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

Result<Settings> with(std::map<std::string, std::string, std::less<>> variables) {
    return settings_from([&](std::string_view name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        if (found == variables.end()) return std::nullopt;
        return found->second;
    });
}

} // namespace

TEST_CASE("settings: the defaults") {
    const Settings s = with({}).value();
    CHECK(s.endpoint.url() == "http://localhost:4318/v1/traces");
    CHECK(s.encoding == Encoding::protobuf);
    CHECK(s.timeout_ns == 10'000'000'000);
    CHECK(s.headers.empty());
    CHECK(s.warnings.empty());
}

TEST_CASE("settings: endpoints") {
    const auto url = [](std::string_view name, std::string value) {
        return with({{std::string(name), std::move(value)}}).value().endpoint.url();
    };
    CHECK(url("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318") == "http://c:4318/v1/traces");
    CHECK(url("OTEL_EXPORTER_OTLP_ENDPOINT", " https://c/base/ ") == "https://c:443/base/v1/traces");
    CHECK(url("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/base?tenant=1") == "http://c:80/base/v1/traces?tenant=1");
    CHECK(url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:1") == "http://c:1/");
    CHECK(url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1]:1/x") == "http://[::1]:1/x");
    CHECK(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/t"}})
              .value()
              .endpoint.host == "b");
    CHECK(traces_endpoint("http://h:4318").value().path == "/v1/traces");
    CHECK(traces_endpoint("http://h:4318/").value().path == "/v1/traces");
    CHECK(traces_endpoint("http://h/custom").value().path == "/custom");
    for (std::string_view bad :
         {"", "localhost:4318", "ftp://x", "http://", "http://:80", "http://h:0", "http://h:65536", "http://h:x",
          "http://h:", "http://[::1", "http://[::1]x", "http://::1/", "http://h/a b", "http://h/\r\nX: y"})
        CHECK_FALSE(parse_endpoint(bad).has_value());
    const auto secret = parse_endpoint("http://bob:hunter2@h/");
    REQUIRE_FALSE(secret.has_value());
    CHECK(Result(secret).error().message().find("hunter2") == std::string::npos);
    CHECK_FALSE(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense"}}).has_value());
}

TEST_CASE("settings: headers") {
    const Settings s =
        with({{"OTEL_EXPORTER_OTLP_HEADERS", "a=1"}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", " api-key = x%3Dy%20z , b=,"}})
            .value();
    REQUIRE(s.headers.size() == 2);
    CHECK(s.headers[0] == Header("api-key", "x=y z"));
    CHECK(s.headers[1] == Header("b", ""));
    for (const char *bad : {"a", "=x", "a=%zz", "a=%4", "a=%", "a b=c", "a=x%0d%0aHost: evil", "a%0a=x", "ok=1,a=%00"}) {
        const Settings refused = with({{"OTEL_EXPORTER_OTLP_HEADERS", bad}}).value();
        CHECK(refused.headers.empty());
        REQUIRE(refused.warnings.size() == 1);
        CHECK(refused.warnings[0].find("evil") == std::string::npos); // the values are secrets
    }
}

TEST_CASE("settings: time-out, protocol, compression") {
    CHECK(with({{"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"}}).value().timeout_ns == 2'500'000'000);
    CHECK(with({{"OTEL_EXPORTER_OTLP_TIMEOUT", "1"}, {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2"}}).value().timeout_ns ==
          2'000'000);
    for (const char *bad : {"0", "-1", "10s", "99999999999"}) {
        const Settings s = with({{"OTEL_EXPORTER_OTLP_TIMEOUT", bad}}).value();
        CHECK(s.timeout_ns == 10'000'000'000);
        CHECK(s.warnings.size() == 1);
    }
    const Settings json = with({{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}}).value();
    CHECK(json.encoding == (render::writes_json() ? Encoding::json : Encoding::protobuf));
    CHECK(json.warnings.empty() == render::writes_json());
    CHECK(with({{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}).value().warnings.size() == 1);
    CHECK(with({{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}}).value().warnings.size() == 1);
}

TEST_CASE("settings: whom the spans are about") {
    const Settings s =
        with({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment.name=test%2Cing,service.name=b,host.name=h"},
              {"OTEL_SERVICE_NAME", "shop"}})
            .value();
    const Resource resource = make_resource(
        {{"service.name", std::string("unknown")}, {"host.name", std::string("real")}, {"process.pid", int64_t{5}}}, s, "0.1");
    const std::vector<Attribute> wanted = {{"deployment.environment.name", std::string("test,ing")},
                                           {"host.name", std::string("h")},
                                           {"service.name", std::string("shop")},
                                           {"process.pid", int64_t{5}}};
    CHECK(resource.attributes == wanted);
    CHECK(resource.scope_version == "0.1");
    const Settings bad = with({{"OTEL_RESOURCE_ATTRIBUTES", "a=1,b=%x"}}).value();
    CHECK(bad.resource.empty());
    CHECK(bad.warnings.size() == 1);
}

TEST_CASE("settings: addresses to listen at") {
    const auto at = [](std::string_view text) {
        const ListenAddress out = parse_listen(text).value();
        return out.host + " " + std::to_string(out.port);
    };
    CHECK(at("9464") == "127.0.0.1 9464");
    CHECK(at(":9464") == "0.0.0.0 9464");
    CHECK(at("10.0.0.1:0") == "10.0.0.1 0");
    CHECK(at("[::1]:9464") == "::1 9464");
    CHECK(at("localhost:65535") == "localhost 65535");
    for (std::string_view bad :
         {"", ":", "x", "h:", "h:65536", "h:-1", "h:9 ", "::1:9464", "http://h:9464", "[]:9", "h:94/metrics"}) {
        INFO(bad);
        REQUIRE_FALSE(parse_listen(bad));
        CHECK(parse_listen(bad).error().kind == Errc::invalid_argument);
    }
}
