// OTLP byte by byte; tests/export/run has the OpenTelemetry project's own definitions read it.
#include "programs/export/otlp.h"

#include <cmath>
#include <limits>

#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

Span sample() {
    Span span;
    span.trace_id.fill(std::byte{0x5b});
    span.span_id.fill(std::byte{0xee});
    span.parent.fill(std::byte{0x0a});
    span.name = "GET";
    span.kind = SpanKind::server;
    span.start = 1'544'712'660'000'000'001;
    span.end = 1'544'712'661'000'000'000;
    span.attributes = {{"n", int64_t{-3}}, {"t", std::string("\xff\"")}, {"b", false}, {"d", 0.1}};
    span.status = Status::error;
    return span;
}

std::string hex(std::string_view bytes) {
    std::string out;
    for (char c : bytes) append(out, "{:02x}", static_cast<unsigned char>(c));
    return out;
}

} // namespace

TEST_CASE("OTLP JSON: ids in hex, names in camel case, 64 bits as text, enumerators as numbers") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    Resource resource;
    resource.attributes = {{"service.name", std::string("s")}};
    resource.scope_version = "1";
    const Span spans[] = {sample()};
    CHECK(
        otlp_json(resource, spans) ==
        R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},"scopeSpans":[{)"
        R"("scope":{"name":"rawbpf","version":"1"},"spans":[{"traceId":"5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b","spanId":"eeeeeeeeeeeeeeee",)"
        R"("parentSpanId":"0a0a0a0a0a0a0a0a","name":"GET","kind":2,"startTimeUnixNano":"1544712660000000001",)"
        R"("endTimeUnixNano":"1544712661000000000","attributes":[{"key":"n","value":{"intValue":"-3"}},)"
        R"({"key":"t","value":{"stringValue":"\ufffd\""}},{"key":"b","value":{"boolValue":false}},{"key":"d","value":{"doubleValue":0.1}}],)"
        R"("status":{"code":2}}]}]}]})");
    Span odd;
    odd.attributes = {{"a", std::nan("")}, {"b", -std::numeric_limits<double>::infinity()}, {"c", 1e300}};
    const std::string text = otlp_json({}, {&odd, 1});
    CHECK(text.find(R"({"doubleValue":"NaN"})") != std::string::npos);
    CHECK(text.find(R"({"doubleValue":"-Infinity"})") != std::string::npos);
    CHECK(text.find(R"({"doubleValue":1e+300})") != std::string::npos);
    CHECK(text.find("parentSpanId") == std::string::npos);
    CHECK(text.find("status") == std::string::npos);
    CHECK(otlp_json({}, {}).find(R"("spans":[])") != std::string::npos);
}

TEST_CASE("OTLP protobuf: the bytes of a small request") {
    Span span = sample();
    span.start = 0x0102030405060708;
    span.end = 0x1112131415161718;
    span.attributes = {{"n", int64_t{-3}}, {"e", std::string()}, {"b", false}, {"d", 1.0}};
    Resource resource;
    resource.attributes = {{"k", std::string("v")}};
    // Each line: a field's key, its length, its value.
    CHECK(hex(otlp_protobuf(resource, {&span, 1})) == "0a9201" // ResourceSpans
                                                      "0a0a"
                                                      "0a08"
                                                      "0a016b"
                                                      "1203"
                                                      "0a0176" // Resource: k, "v"
                                                      "128301" // ScopeSpans
                                                      "0a08"
                                                      "0a06"
                                                      "726177627066" // Scope: its name
                                                      "1277"         // Span
                                                      "0a10"
                                                      "5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b" // its trace
                                                      "1208"
                                                      "eeeeeeeeeeeeeeee" // itself
                                                      "2208"
                                                      "0a0a0a0a0a0a0a0a" // its parent
                                                      "2a03"
                                                      "474554" // GET
                                                      "3002"   // a server's
                                                      "39"
                                                      "0807060504030201" // from
                                                      "41"
                                                      "1817161514131211" // to
                                                      "4a10"
                                                      "0a016e"
                                                      "120b"
                                                      "18fdffffffffffffffff01" // n: -3
                                                      "4a07"
                                                      "0a0165"
                                                      "1202"
                                                      "0a00" // e: an empty text is a text
                                                      "4a07"
                                                      "0a0162"
                                                      "1202"
                                                      "1000" // b: false is a truth
                                                      "4a0e"
                                                      "0a0164"
                                                      "1209"
                                                      "21000000000000f03f" // d: 1.0
                                                      "7a02"
                                                      "1802"); // Status: error
}

TEST_CASE("OTLP answers, protobuf: what was rejected") {
    const auto read = [](std::string_view body) { return read_response_protobuf(body); };
    CHECK_FALSE(read("").value().has_value());
    CHECK_FALSE(read(std::string_view("\x0a\x00", 2)).value().has_value()); // an empty one, as some send it
    const std::string_view some("\x0a\x06\x08\x03\x12\x02no", 8);
    const std::optional<PartialSuccess> partial = read(some).value();
    REQUIRE(partial);
    CHECK(partial->rejected == 3);
    CHECK(partial->message == "no");
    // A remark, behind fields of a later version.
    const std::optional<PartialSuccess> remark =
        read(std::string_view("\x10\x07\x1d....\x21........\x0a\x04\x12\x02hm", 22)).value();
    REQUIRE(remark);
    CHECK(remark->rejected == 0);
    CHECK(remark->message == "hm");
    CHECK(read(std::string_view("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13)).value() == std::nullopt); // -1
    CHECK_FALSE(read("<html>").has_value());
    CHECK_FALSE(read(std::string_view("\x00\x01", 2)).has_value());
    for (size_t n = 1; n < some.size(); ++n) CHECK_FALSE(read(some.substr(0, n)).has_value());
    CHECK_FALSE(read(std::string_view("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11)).has_value()); // 65 bits
}

TEST_CASE("OTLP answers, JSON: what was rejected") {
    if (!render::writes_json()) SKIP("this build reads no JSON");
    CHECK_FALSE(read_response_json("{}").value().has_value());
    CHECK_FALSE(read_response_json("").value().has_value());
    CHECK_FALSE(read_response_json(R"({"partialSuccess":{}})").value().has_value());
    CHECK_FALSE(read_response_json(R"({"partialSuccess":null})").value().has_value());
    const auto partial = read_response_json(R"({"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"},"x":[1]})").value();
    REQUIRE(partial);
    CHECK(partial->rejected == 3);
    CHECK(partial->message == "no");
    CHECK(read_response_json(R"({"partialSuccess":{"rejectedSpans":2}})").value()->rejected == 2);
    for (std::string_view bad : {"[]", "<html>", "{", R"({"partialSuccess":1})", R"({"partialSuccess":{"rejectedSpans":"many"}})",
                                 R"({"partialSuccess":{"rejectedSpans":1.5}})", R"({"partialSuccess":{"errorMessage":1}})"})
        CHECK_FALSE(read_response_json(bad).has_value());
    CHECK_FALSE(read_response_json(std::string(100'000, '[')).has_value()); // depth costs no stack
}
