// OpenTelemetry's environment variables. A value with a mistake is said and left out, so that a typing error in a list of
// attributes doesn't end a trace; but never half of a list: a header may be the one with the credentials.
//
// Values of headers come percent-encoded, so that they could hold anything; a line's end among them would begin a header of its
// own in the request. Those are refused.
#include "programs/export/settings.h"

#include <algorithm>

#include "programs/export/field.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/base/numbers.h"

namespace rawbpf::inline v0::telemetry {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// RFC 9110's token: what a header's name is made of.
bool is_token(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
}

struct Found {
    std::string name, value;
};
// The variable for traces, or the one for all signals.
std::optional<Found> look_up(const Environment &environment, std::string_view what) {
    for (const std::string_view prefix : {"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"}) {
        std::string name = std::string(prefix).append(what);
        if (std::optional<std::string> value = environment(name); value && !trim(*value).empty())
            return Found{std::move(name), std::string(trim(*value))};
    }
    return std::nullopt;
}

// A key stands in a resource once: the last one wins.
void set_attribute(std::vector<Attribute> &attributes, const std::string &key, std::string value) {
    std::erase_if(attributes, [&](const Attribute &one) { return one.key == key; });
    attributes.push_back({key, std::move(value)});
}

void read_headers(Settings &settings, const Found &found) {
    // Never the values: they are secrets.
    const auto refuse = [&](std::string_view why) {
        settings.warnings.push_back(format("{}: {}; no header is sent", found.name, why));
    };
    auto pairs = parse_pairs(found.value);
    if (!pairs) return refuse("it isn't NAME=VALUE,... with percent-encoded values");
    for (const Header &one : *pairs) {
        if (!is_token(one.first)) return refuse("a header's name has characters that aren't allowed in one");
        if (has_control(one.second)) return refuse("a header's value has control characters");
    }
    settings.headers = std::move(*pairs);
}

} // namespace

std::string Endpoint::url() const {
    const bool bare = host.find(':') != std::string::npos;
    return format("{}://{}{}{}:{}{}", tls ? "https" : "http", bare ? "[" : "", host, bare ? "]" : "", port, path);
}

Result<Endpoint> parse_endpoint(std::string_view url) {
    const auto wrong = [&](std::string_view why) {
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is no address of a receiver: {}", url, why),
                                     "as in: http://localhost:4318"));
    };
    Endpoint out;
    std::string_view rest = url;
    if (rest.substr(0, 7) == "http://")
        rest.remove_prefix(7);
    else if (rest.substr(0, 8) == "https://") {
        rest.remove_prefix(8);
        out.tls = true;
    } else
        return wrong("it doesn't start with http:// or https://");
    if (std::any_of(url.begin(), url.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }))
        return wrong("it has spaces or control characters");
    rest = rest.substr(0, rest.find('#'));
    const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    std::string_view authority = rest.substr(0, slash);
    out.path = rest.substr(slash);
    if (out.path.substr(0, 1) == "?") out.path.insert(0, "/");
    if (authority.find('@') != std::string_view::npos) // not shown: there is a password in it
        return Unexpected(make_error(Errc::invalid_argument, "the receiver's address has a user's name in it",
                                     "credentials go into a header: OTEL_EXPORTER_OTLP_HEADERS=authorization=Basic%20..."));
    std::optional<std::string_view> port;
    if (authority.substr(0, 1) == "[") {
        const size_t close = authority.find(']');
        if (close == std::string_view::npos) return wrong("there is a [ without a ]");
        out.host = authority.substr(1, close - 1);
        const std::string_view behind = authority.substr(close + 1);
        if (!behind.empty() && behind[0] != ':') return wrong("only a port can stand behind the ]");
        if (!behind.empty()) port = behind.substr(1);
    } else {
        const size_t colon = authority.find(':');
        out.host = authority.substr(0, colon);
        if (colon != std::string_view::npos) port = authority.substr(colon + 1);
        if (port && port->find(':') != std::string_view::npos) return wrong("an IPv6 address stands in [ ]");
    }
    if (out.host.empty()) return wrong("the host's name is missing");
    out.port = out.tls ? 443 : 80;
    if (port) {
        const auto number = whole_number<uint16_t>(*port);
        if (!number || *number == 0) return wrong("the port is no number from 1 to 65535");
        out.port = *number;
    }
    return out;
}

Result<Endpoint> traces_endpoint(std::string_view url) {
    Endpoint out = TRY(parse_endpoint(url));
    if (out.path.empty() || out.path == "/") out.path = "/v1/traces";
    return out;
}

Result<ListenAddress> parse_listen(std::string_view text) {
    const auto wrong = [&](std::string_view why) {
        return Unexpected(make_error(Errc::invalid_argument, format("\"{}\" is no address to listen at: {}", text, why),
                                     "as in: 9464, 127.0.0.1:9464, [::1]:9464, or :9464 for every address"));
    };
    ListenAddress out;
    const size_t colon = text.rfind(':');
    std::string_view host = colon == std::string_view::npos ? "127.0.0.1" : text.substr(0, colon);
    const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
    const auto number = whole_number<uint16_t>(port);
    if (port.empty() || !number) return wrong("a port is a number up to 65535");
    out.port = *number;
    if (host.empty()) host = "0.0.0.0";
    if (host.front() == '[' && host.back() == ']' && host.size() > 2)
        host = host.substr(1, host.size() - 2);
    else if (host.find_first_of(":[]") != std::string_view::npos)
        return wrong("an IPv6 address stands in brackets");
    if (std::any_of(host.begin(), host.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == '/'; }))
        return wrong("only HOST:PORT is wanted, no URL");
    out.host = host;
    return out;
}

Result<std::string> percent_decode(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0) return fail(Errc::invalid_argument, "a % without two hexadecimal digits behind it");
        out += static_cast<char>(high << 4 | low);
        i += 2;
    }
    return out;
}

Result<std::vector<Header>> parse_pairs(std::string_view list) {
    std::vector<Header> out;
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        const std::string_view one = trim(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
        if (one.empty()) continue;
        const size_t equals = one.find('=');
        if (equals == std::string_view::npos) return fail(Errc::invalid_argument, "there is no = in a part of it");
        std::string key = TRY(percent_decode(trim(one.substr(0, equals))));
        if (key.empty()) return fail(Errc::invalid_argument, "there is nothing before a =");
        out.emplace_back(std::move(key), TRY(percent_decode(trim(one.substr(equals + 1)))));
    }
    return out;
}

Result<Settings> settings_from(const Environment &environment) {
    Settings out;
    const auto warn = [&](std::string text) { out.warnings.push_back(std::move(text)); };
    if (const auto found = look_up(environment, "ENDPOINT")) {
        out.endpoint = TRY_IN(parse_endpoint(found->value), "{}", found->name);
        std::string &path = out.endpoint.path;
        if (path.empty()) path = "/";
        if (found->name == "OTEL_EXPORTER_OTLP_ENDPOINT") {
            const size_t end = std::min(path.find('?'), path.size());
            path.insert(end, path[end - 1] == '/' ? "v1/traces" : "/v1/traces");
        }
    }
    if (const auto found = look_up(environment, "HEADERS")) read_headers(out, *found);
    if (const auto found = look_up(environment, "TIMEOUT")) {
        const auto ms = whole_number<uint32_t>(found->value);
        if (ms && *ms > 0)
            out.timeout_ns = uint64_t{*ms} * 1'000'000;
        else
            warn(format("{}: \"{}\" is no number of milliseconds; 10 s are used", found->name, found->value));
    }
    if (const auto found = look_up(environment, "PROTOCOL")) {
        if (found->value == "http/json" && render::writes_json())
            out.encoding = Encoding::json;
        else if (found->value == "http/json")
            warn(format("{}: this build has no JSON (nlohmann-json); http/protobuf is used", found->name));
        else if (found->value != "http/protobuf")
            warn(format("{}: \"{}\" isn't spoken here, only http/protobuf and http/json; http/protobuf is used", found->name,
                        found->value));
    }
    if (const auto found = look_up(environment, "COMPRESSION"); found && found->value != "none")
        warn(format("{}: \"{}\": nothing is compressed here", found->name, found->value));
    if (const auto list = environment("OTEL_RESOURCE_ATTRIBUTES"); list && !list->empty()) {
        auto pairs = parse_pairs(*list);
        if (pairs)
            for (Header &one : *pairs) set_attribute(out.resource, one.first, std::move(one.second));
        else
            warn(format("OTEL_RESOURCE_ATTRIBUTES: {}; none of them is used", pairs.error().message()));
    }
    if (const auto name = environment("OTEL_SERVICE_NAME"); name && !name->empty()) {
        set_attribute(out.resource, "service.name", *name);
    }
    return out;
}

Resource make_resource(std::vector<Attribute> detected, const Settings &settings, std::string_view version) {
    Resource out;
    out.attributes = settings.resource;
    for (Attribute &one : detected) {
        const bool known =
            std::any_of(out.attributes.begin(), out.attributes.end(), [&](const Attribute &a) { return a.key == one.key; });
        if (!known) out.attributes.push_back(std::move(one));
    }
    out.scope_version = version;
    return out;
}

} // namespace rawbpf::inline v0::telemetry
