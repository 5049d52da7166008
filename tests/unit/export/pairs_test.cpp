// Which probes belong together, and what a span says of them.
#include "programs/export/pairs.h"

#include "tests/support/test.h"
#include "tests/unit/export/events.h"

using namespace rawbpf::telemetry;
using rawbpf::test::event;
using rawbpf::test::number_of;
using rawbpf::test::text_of;

namespace {

Span described(const ProbeEvent &start, const ProbeEvent &end, const Conventions &conventions = {}) {
    Span span;
    describe_start(span, meaning_of(start), start, conventions);
    const Meaning last = meaning_of(end);
    CHECK(last.family == meaning_of(start).family);
    describe_end(span, last, end, conventions);
    return span;
}

} // namespace

TEST_CASE("pairs: by the table, and by their names") {
    const auto is = [](std::string_view provider, std::string_view name, Role role, std::string_view family) {
        const Meaning meaning = meaning_of(event(provider, name, 0));
        CHECK(meaning.role == role);
        CHECK(meaning.family == family);
    };
    is("postgresql", "query__start", Role::start, "query");
    is("postgresql", "query__done", Role::end, "query");
    is("postgresql", "transaction__abort", Role::failed_end, "transaction");
    is("net_http", "client_response_received", Role::end, "client_request");
    is("tls", "handshake_error", Role::failed_end, "handshake");
    is("sql", "tx_begin", Role::point, "tx_begin"); // not the start of a "tx"
    is("python", "gc__done", Role::end, "gc");
    is("python", "function__entry", Role::start, "function");
    is("ruby", "parse__begin", Role::start, "parse");
    is("php", "request__shutdown", Role::end, "request");
    is("mine", "work_start", Role::start, "work");
    is("mine", "work__start", Role::start, "work");
    is("mine", "__start", Role::none, ""); // of nothing
    is("mine", "restart", Role::none, "");
    is("libstdcxx", "throw", Role::none, "");
    ProbeEvent function = event("libz.so.1", "inflate_end", 0);
    function.phase = Phase::start; // a function's name says nothing
    CHECK(meaning_of(function).role == Role::start);
    CHECK(meaning_of(function).family == "inflate_end");
}

TEST_CASE("pairs: PostgreSQL's queries") {
    const Argument query[] = {{"query", std::string_view("select * from users where mail = 'bob@example.com'")}};
    Span span = described(event("postgresql", "query__start", 1, query), event("postgresql", "query__done", 2, query));
    CHECK(span.name == "SELECT");
    CHECK(span.kind == SpanKind::server);
    CHECK(text_of(span, "db.system.name") == "postgresql");
    CHECK(text_of(span, "db.query.text") == "select * from users where mail = ?");
    CHECK(number_of(span, "process.pid") == 5);
    CHECK(number_of(span, "thread.id") == 7);
    CHECK(span.status == Status::unset);
    Conventions keep;
    keep.keep_literals = true;
    span = described(event("postgresql", "query__start", 1, query), event("postgresql", "query__done", 2, query), keep);
    CHECK(text_of(span, "db.query.text") == "select * from users where mail = 'bob@example.com'");
    // Its other probes go by their names, and show no more.
    span = described(event("postgresql", "query__parse__start", 1, query), event("postgresql", "query__parse__done", 2));
    CHECK(span.name == "postgresql:query__parse");
    CHECK(text_of(span, "rawbpf.arg.query") == "select * from users where mail = ?");
}

TEST_CASE("pairs: a query that couldn't be read") {
    const Argument query[] = {{"query", {}}};
    const Span span = described(event("postgresql", "query__start", 1, query), event("postgresql", "query__done", 2));
    CHECK(span.name == "postgresql");
    CHECK(span.find("db.query.text") == nullptr);
}

TEST_CASE("pairs: HTTP, server") {
    const Argument request[] = {{"method", std::string_view("POST")}, {"path", std::string_view("/load?token=1")}};
    const auto with = [&](int64_t code) {
        const Argument status[] = {{"status", code}};
        return described(event("net_http", "server_request_start", 1, request),
                         event("net_http", "server_request_end", 2, status));
    };
    Span span = with(200);
    CHECK(span.name == "POST");
    CHECK(span.kind == SpanKind::server);
    CHECK(text_of(span, "http.request.method") == "POST");
    CHECK(text_of(span, "url.path") == "/load");
    CHECK(span.find("url.query") == nullptr);
    CHECK(number_of(span, "http.response.status_code") == 200);
    CHECK(span.status == Status::unset);
    CHECK(with(404).status == Status::unset);
    CHECK(with(503).status == Status::error);
    CHECK(text_of(with(503), "error.type") == "503");
}

TEST_CASE("pairs: HTTP, client") {
    const Argument request[] = {{"method", std::string_view("")},
                                {"url", std::string_view("https://bob:pw@api.example/v1/x?key=1")}};
    const Argument status[] = {{"status", int64_t{404}}};
    const Span span = described(event("net_http", "client_request_start", 1, request),
                                event("net_http", "client_response_received", 2, status));
    CHECK(span.name == "GET"); // what net/http makes of an empty one
    CHECK(span.kind == SpanKind::client);
    CHECK(text_of(span, "url.full") == "https://REDACTED:REDACTED@api.example/v1/x");
    CHECK(text_of(span, "url.path") == "/v1/x");
    CHECK(text_of(span, "url.scheme") == "https");
    CHECK(text_of(span, "server.address") == "api.example");
    CHECK(number_of(span, "server.port") == 443);
    CHECK(span.status == Status::error); // of a client 4xx is one
    const Argument odd[] = {{"method", std::string_view("HUNTER2")}};
    const Span other =
        described(event("net_http", "client_request_start", 1, odd), event("net_http", "client_response_received", 2));
    CHECK(other.name == "HTTP");
    CHECK(text_of(other, "http.request.method") == "_OTHER");
    CHECK(other.find("http.response.status_code") == nullptr);
}

TEST_CASE("pairs: TLS, and the names in the Go fork's documents") {
    const Argument server[] = {{"is_client", int64_t{0}}};
    Span span = described(event("tls", "handshake_start", 1, server), event("tls", "handshake_error", 2, server));
    CHECK(span.kind == SpanKind::server);
    CHECK(span.status == Status::error);
    CHECK(*span.find("tls.established") == Value(false));
    const Argument query[] = {{"query", std::string_view("delete from t where id = 9")}};
    const Argument failed[] = {{"error", int64_t{1}}};
    span = described(event("go", "sql_query_start", 1, query), event("go", "sql_query_end", 2, failed));
    CHECK(span.name == "DELETE");
    CHECK(text_of(span, "db.query.text") == "delete from t where id = ?");
    CHECK(span.status == Status::error);
}

TEST_CASE("pairs: any other, with its arguments") {
    const Argument start[] = {{"file", std::string_view("a.py")}, {"", int64_t{3}}, {"x", 1.5}, {"y", true}, {"z", {}}};
    const Argument end[] = {{"collected", int64_t{9}}};
    const Span span = described(event("mine", "work__start", 1, start), event("mine", "work__done", 2, end));
    CHECK(span.name == "mine:work");
    CHECK(span.kind == SpanKind::internal);
    CHECK(text_of(span, "rawbpf.arg.file") == "a.py");
    CHECK(number_of(span, "rawbpf.arg.1") == 3);
    CHECK(*span.find("rawbpf.arg.x") == Value(1.5));
    CHECK(*span.find("rawbpf.arg.y") == Value(true));
    CHECK(span.find("rawbpf.arg.z") == nullptr);
    CHECK(number_of(span, "rawbpf.end.collected") == 9);
}

TEST_CASE("pairs: long texts are cut between characters") {
    std::string text(10, 'x');
    text += "\xc3\xa4"; // ä
    const Argument start[] = {{"file", std::string_view(text)}};
    Conventions short_ones;
    short_ones.longest_text = 11;
    const Span span = described(event("mine", "work__start", 1, start), event("mine", "work__done", 2), short_ones);
    CHECK(text_of(span, "rawbpf.arg.file") == std::string(10, 'x'));
}
