// The known pairs, and OpenTelemetry's semantic conventions for what they measure
// (https://opentelemetry.io/docs/specs/semconv/http/http-spans/, .../database/database-spans/, .../registry/attributes/tls/).
//
// A row says which probes belong together and has two functions that make attributes: one from the arguments at the start, one
// from those at the end. The arguments' names are those of programs/trace/known_probes.cpp. What no row knows goes by its name,
// as people name probes: X__start with X__done or X__end, X__entry with X__return, X_start with X_end.
//
// Names of spans have to be of few values (collectors group by them), so that they never hold a path or a statement's text.
#include "programs/export/pairs.h"

#include <algorithm>

#include "programs/export/redact.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::telemetry {

struct Pair {
    std::string_view provider, start, end, failed_end; ///< an empty end: the start alone is a point in time
    std::string_view family;
    SpanKind kind;
    void (*at_start)(Span &, const ProbeEvent &, const Conventions &);
    void (*at_end)(Span &, const ProbeEvent &, const Conventions &);
};

namespace {

// At most `longest` bytes, not cut within a UTF-8 character.
std::string cut(std::string_view text, const Conventions &conventions) {
    if (text.size() <= conventions.longest_text) return std::string(text);
    size_t end = conventions.longest_text;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return std::string(text.substr(0, end));
}

void fail_with(Span &span, std::string type) {
    span.status = Status::error;
    span.set("error.type", std::move(type));
}

// ---- HTTP ---------------------------------------------------------------------------------------------------------------------

void set_method(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    static constexpr std::string_view kMethods[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                                    "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    std::string_view method = event.text("method");
    if (method.empty() && event.find("method") && event.find("method")->value.index() != 0)
        method = "GET"; // what net/http makes of ""
    if (std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods)) {
        span.name = method;
        span.set("http.request.method", std::string(method));
        return;
    }
    span.name = "HTTP"; // the conventions' name for methods that anybody could make up
    span.set("http.request.method", std::string("_OTHER"));
    if (!method.empty()) span.set("http.request.method_original", cut(method, conventions));
}

void set_url(Span &span, std::string_view url, const Conventions &conventions) {
    const UrlParts parts = split_url(url);
    if (!parts.scheme.empty()) {
        span.set("url.full", cut(redact_url(url, conventions.keep_literals), conventions));
        span.set("url.scheme", cut(parts.scheme, conventions));
        if (!parts.host.empty()) span.set("server.address", cut(parts.host, conventions));
        const uint32_t port = parts.port ? parts.port : parts.scheme == "https" ? 443 : parts.scheme == "http" ? 80 : 0;
        if (port) span.set("server.port", int64_t{port});
    }
    if (!parts.path.empty()) span.set("url.path", cut(parts.path, conventions));
    if (conventions.keep_literals && !parts.query.empty()) span.set("url.query", cut(parts.query, conventions));
}

void http_start(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    set_method(span, event, conventions);
    const std::string_view url = event.text("url");
    set_url(span, url.empty() ? event.text("path") : url, conventions);
}

void http_end(Span &span, const ProbeEvent &event, const Conventions &) {
    const int64_t status = event.number("status", -1);
    if (status < 0) return;
    if (status == 0) { // no response: the request failed
        if (span.kind == SpanKind::client) fail_with(span, "_OTHER");
        return;
    }
    span.set("http.response.status_code", status);
    if (status >= 500 || (span.kind == SpanKind::client && status >= 400)) fail_with(span, std::to_string(status));
}

// ---- SQL ----------------------------------------------------------------------------------------------------------------------

void set_query(Span &span, std::string_view query, std::string_view system, const Conventions &conventions) {
    const bool postgres = system == "postgresql";
    span.set("db.system.name", std::string(system));
    const std::string operation = sql_operation(query);
    span.name = operation.empty() ? std::string(system == "other_sql" ? "sql" : system) : operation;
    if (!operation.empty()) span.set("db.query.summary", operation);
    if (!query.empty())
        span.set("db.query.text", cut(conventions.keep_literals ? std::string(query) : redact_sql(query, postgres), conventions));
}
void postgres_start(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    set_query(span, event.text("query"), "postgresql", conventions);
}
void transaction_start(Span &span, const ProbeEvent &, const Conventions &) {
    span.name = "transaction";
    span.set("db.system.name", std::string("postgresql"));
}
// A rollback is no error: the application may have asked for it.
void transaction_end(Span &span, const ProbeEvent &event, const Conventions &) {
    span.set("rawbpf.transaction.committed", event.name == "transaction__commit");
}
void sql_start(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    set_query(span, event.text("query"), "other_sql", conventions);
    if (span.name == "sql") append(span.name, " {}", event.name); // "sql tx_begin": there is no text
}
void sql_end(Span &span, const ProbeEvent &event, const Conventions &) {
    if (event.number("error", 0) != 0) fail_with(span, "_OTHER");
}

// ---- TLS and connections -------------------------------------------------------------------------------------------------

void tls_start(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    span.name = "TLS handshake";
    if (event.find("is_client")) span.kind = event.number("is_client", 1) != 0 ? SpanKind::client : SpanKind::server;
    if (const std::string_view server = event.text("server_name"); !server.empty())
        span.set("server.address", cut(server, conventions));
}
void tls_end(Span &span, const ProbeEvent &event, const Conventions &) {
    const bool failed = event.name == "handshake_error" || event.number("error", 0) != 0;
    span.set("tls.established", !failed);
    if (failed) fail_with(span, "tls_handshake");
}
void dial_start(Span &span, const ProbeEvent &event, const Conventions &conventions) {
    span.name = "dial";
    const std::string_view network = event.text("network");
    if (network.substr(0, 3) == "tcp" || network.substr(0, 3) == "udp")
        span.set("network.transport", std::string(network.substr(0, 3)));
    if (network.substr(0, 4) == "unix") span.set("network.transport", std::string("unix"));
    if (const std::string_view address = event.text("address"); !address.empty())
        span.set("network.peer.address", cut(address, conventions));
}

// ---- any other ----------------------------------------------------------------------------------------------------------------

void set_value(Span &span, std::string_view key, const decltype(Argument::value) &value, const Conventions &conventions) {
    if (const auto *number = std::get_if<int64_t>(&value)) span.set(key, *number);
    if (const auto *real = std::get_if<double>(&value)) span.set(key, *real);
    if (const auto *truth = std::get_if<bool>(&value)) span.set(key, *truth);
    if (const auto *text = std::get_if<std::string_view>(&value)) span.set(key, cut(*text, conventions));
}
void set_arguments(Span &span, const ProbeEvent &event, std::string_view prefix, const Conventions &conventions) {
    for (size_t i = 0; i < event.arguments.size(); ++i) {
        const Argument &one = event.arguments[i];
        std::string key(prefix);
        if (one.name.empty())
            append(key, "{}", i);
        else
            key += one.name;
        const auto *text = std::get_if<std::string_view>(&one.value);
        if (text && one.name == "query" && !conventions.keep_literals)
            span.set(key, cut(redact_sql(*text, event.provider == "postgresql"), conventions));
        else
            set_value(span, key, one.value, conventions);
    }
}
void plain_end(Span &, const ProbeEvent &, const Conventions &) {}

constexpr std::string_view kNone;

// clang-format off
constexpr Pair kPairs[] = {
    {"postgresql", "query__start", "query__done", kNone, "query", SpanKind::server, postgres_start, plain_end},
    {"postgresql", "transaction__start", "transaction__commit", "transaction__abort", "transaction", SpanKind::internal, transaction_start,
     transaction_end},
    {"net_http", "server_request_start", "server_request_end", kNone, "server_request", SpanKind::server, http_start, http_end},
    {"net_http", "client_request_start", "client_response_received", kNone, "client_request", SpanKind::client, http_start, http_end},
    {"sql", "prepare", kNone, kNone, "prepare", SpanKind::client, sql_start, plain_end},
    {"sql", "exec", kNone, kNone, "exec", SpanKind::client, sql_start, plain_end},
    {"sql", "query", kNone, kNone, "query", SpanKind::client, sql_start, plain_end},
    {"sql", "stmt_exec", kNone, kNone, "stmt_exec", SpanKind::client, sql_start, plain_end},
    {"sql", "stmt_query", kNone, kNone, "stmt_query", SpanKind::client, sql_start, plain_end},
    {"sql", "tx_begin", kNone, kNone, "tx_begin", SpanKind::client, sql_start, plain_end},
    {"tls", "handshake_start", "handshake_end", "handshake_error", "handshake", SpanKind::client, tls_start, tls_end},
    // The Go fork's documents have other names than its sources.
    {"go", "http_server_request_start", "http_server_request_end", kNone, "http_server_request", SpanKind::server, http_start, http_end},
    {"go", "sql_query_start", "sql_query_end", kNone, "sql_query", SpanKind::client, sql_start, sql_end},
    {"go", "tls_handshake_start", "tls_handshake_end", kNone, "tls_handshake", SpanKind::client, tls_start, tls_end},
    {"go", "net_dial_start", "net_dial_end", kNone, "net_dial", SpanKind::client, dial_start, sql_end},
};
// clang-format on

struct Ending {
    std::string_view text;
    Role role;
};
// In this order: __start is also _start's.
constexpr Ending kEndings[] = {
    {"__start", Role::start}, {"__begin", Role::start}, {"__entry", Role::start}, {"__startup", Role::start},
    {"__done", Role::end},    {"__end", Role::end},     {"__return", Role::end},  {"__shutdown", Role::end},
    {"_start", Role::start},  {"_begin", Role::start},  {"_entry", Role::start},  {"_done", Role::end},
    {"_end", Role::end},      {"_return", Role::end},   {"-start", Role::start},  {"-end", Role::end},
    {"-entry", Role::start},  {"-return", Role::end},
};

} // namespace

const Argument *ProbeEvent::find(std::string_view argument) const {
    for (const Argument &one : arguments)
        if (one.name == argument) return &one;
    return nullptr;
}
int64_t ProbeEvent::number(std::string_view argument, int64_t otherwise) const {
    const Argument *one = find(argument);
    if (!one) return otherwise;
    if (const auto *number = std::get_if<int64_t>(&one->value)) return *number;
    if (const auto *truth = std::get_if<bool>(&one->value)) return *truth;
    return otherwise;
}
std::string_view ProbeEvent::text(std::string_view argument) const {
    const Argument *one = find(argument);
    const auto *text = one ? std::get_if<std::string_view>(&one->value) : nullptr;
    return text ? *text : std::string_view();
}

Meaning meaning_of(const ProbeEvent &event) {
    switch (event.phase) {
    case Phase::start: return {Role::start, event.name, nullptr};
    case Phase::end: return {Role::end, event.name, nullptr};
    case Phase::whole: return {Role::whole, event.name, nullptr};
    case Phase::point: return {Role::point, event.name, nullptr};
    case Phase::by_name: break;
    }
    for (const Pair &pair : kPairs) {
        if (pair.provider != event.provider) continue;
        if (pair.start == event.name) return {pair.end.empty() ? Role::point : Role::start, pair.family, &pair};
        if (!pair.end.empty() && pair.end == event.name) return {Role::end, pair.family, &pair};
        if (!pair.failed_end.empty() && pair.failed_end == event.name) return {Role::failed_end, pair.family, &pair};
    }
    for (const Ending &ending : kEndings) {
        if (event.name.size() <= ending.text.size() || event.name.substr(event.name.size() - ending.text.size()) != ending.text)
            continue;
        const std::string_view family = event.name.substr(0, event.name.size() - ending.text.size());
        if (family == "_") break; // "__start"
        return {ending.role, family, nullptr};
    }
    return {};
}

void describe_start(Span &span, const Meaning &meaning, const ProbeEvent &event, const Conventions &conventions) {
    if (meaning.pair) {
        span.kind = meaning.pair->kind;
        meaning.pair->at_start(span, event, conventions);
    } else {
        span.name = event.provider;
        append(span.name, "{}{}", event.provider.empty() ? "" : ":", meaning.family);
        set_arguments(span, event, "rawbpf.arg.", conventions);
    }
    span.set("process.pid", int64_t{event.pid});
    span.set("thread.id", int64_t{event.tid});
    if (event.goroutine) span.set("rawbpf.goroutine", format("{:#x}", event.goroutine));
    if (!event.comm.empty()) span.set("process.executable.name", cut(event.comm, conventions));
}

void describe_end(Span &span, const Meaning &meaning, const ProbeEvent &event, const Conventions &conventions) {
    if (meaning.pair)
        meaning.pair->at_end(span, event, conventions);
    else if (meaning.role != Role::whole) // whose arguments are those of its start
        set_arguments(span, event, "rawbpf.end.", conventions);
    set_value(span, "rawbpf.return", event.result, conventions);
    if (!event.error.empty()) fail_with(span, cut(event.error, conventions));
}

} // namespace rawbpf::inline v0::telemetry
