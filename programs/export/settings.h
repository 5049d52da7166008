// Where spans go, and whom they are said to be about: the environment variables that all of OpenTelemetry's exporters read. PURE.
//
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/, .../configuration/sdk-environment-variables/
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/export/otlp.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::telemetry {

/// A receiver's address in parts.
struct Endpoint {
    bool tls = false;
    std::string host; ///< a name or an address, IPv6 without brackets
    uint16_t port = 0;
    std::string path; ///< from its "/", with the query
    /// As a URL again.
    [[nodiscard]] std::string url() const;
    bool operator==(const Endpoint &) const = default;
};

/// "http://HOST[:PORT][/PATH]", or https. Ports: 80, 443. Errors: invalid_argument, in words.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view url);
/// What --otlp URL means: a URL without a path, "http://host:4318", stands for the receiver's base, to which /v1/traces is added.
[[nodiscard]] Result<Endpoint> traces_endpoint(std::string_view url);

/// Where to listen.
struct ListenAddress {
    std::string host;  ///< IPv6 without brackets
    uint16_t port = 0; ///< 0: any that is free
};
/// "HOST:PORT", "[::1]:PORT", ":PORT" (every address) or "PORT" (this machine only). Errors: invalid_argument, in words.
[[nodiscard]] Result<ListenAddress> parse_listen(std::string_view text);

using Header = std::pair<std::string, std::string>;

struct Settings {
    Endpoint endpoint{false, "localhost", 4318, "/v1/traces"};
    std::vector<Header> headers;
    uint64_t timeout_ns = 10'000'000'000; ///< of one request
    Encoding encoding = Encoding::protobuf;
    std::vector<Attribute> resource; ///< OTEL_RESOURCE_ATTRIBUTES, and OTEL_SERVICE_NAME, which wins
    /// What was set and couldn't be used, a sentence each: OpenTelemetry asks for a warning and the default instead of an error.
    std::vector<std::string> warnings;
};

/// A variable's value; nullopt, or an empty one: not set.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

/// OTEL_EXPORTER_OTLP_ENDPOINT (with /v1/traces added), _TRACES_ENDPOINT (as it is), _HEADERS, _TIMEOUT (ms), _PROTOCOL, each
/// also with TRACES_ in front of its last word, which wins; OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME. Errors: invalid_argument
/// for an endpoint that is no URL: sending elsewhere would be worse than not starting.
[[nodiscard]] Result<Settings> settings_from(const Environment &environment);

/// "k1=v1,k2=v2", values percent-encoded, spaces around them ignored (W3C baggage without its metadata). Errors:
/// invalid_argument.
[[nodiscard]] Result<std::vector<Header>> parse_pairs(std::string_view list);
/// Errors: invalid_argument for a % without two hexadecimal digits.
[[nodiscard]] Result<std::string> percent_decode(std::string_view text);

/// The caller's attributes (host.name, process.*, a default for service.name) with the environment's in front of them.
[[nodiscard]] Resource make_resource(std::vector<Attribute> detected, const Settings &settings, std::string_view version);

} // namespace rawbpf::inline v0::telemetry
