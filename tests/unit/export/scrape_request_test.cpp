// What a scraper may ask.
#include "programs/export/scrape_request.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

const OwnNames kOwn{"metrics.example", "10.0.0.5", "db1", false};
const OwnNames kEverywhere{"0.0.0.0", "0.0.0.0", "", true};

int status(std::string_view head) { return judge_request(head, kOwn).status; }

} // namespace

TEST_CASE("scrape request: whose name is in Host") {
    for (const std::string_view host : {"metrics.example", "Metrics.Example.:80", "10.0.0.5", "10.0.0.5:9464",
                                        "[::ffff:10.0.0.5]", "db1", "localhost", "localhost:", "127.9.9.9", "[::1]:9464"})
        CHECK_MESSAGE(is_own_host(host, kOwn), host);
    for (const std::string_view host :
         {"", ".", ":80", "evil.example", "evil.localhost", "localhost.evil.example", "10.0.0.6", "[::2]", "::1", "[::1",
          "[::1]x", "localhost:80x", "u@localhost", "localhost:80@evil", "127.0.0.1.x"})
        CHECK_MESSAGE(!is_own_host(host, kOwn), host);
    CHECK(is_own_host("192.0.2.7:9464", kEverywhere)); // an address is nobody's name
    CHECK(is_own_host("[2001:db8::1]", kEverywhere));
    CHECK(!is_own_host("evil.example", kEverywhere));
    CHECK(!is_own_host(":80", kEverywhere)); // of a machine without a name, too
}

TEST_CASE("scrape request: statuses") {
    CHECK(status("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") == 200);
    CHECK(status("GET /metrics?a=b HTTP/1.1\nhOsT:\tlocalhost \nAccept: */*\n\n") == 200);
    CHECK(status("GET http://localhost:1/metrics HTTP/1.1\r\nHost: evil\r\n\r\n") == 200);
    CHECK(status("GET /metrics HTTP/1.0\r\n\r\n") == 200);
    CHECK(judge_request("HEAD /metrics HTTP/1.1\r\nHost: db1\r\n\r\n", kOwn).without_body);
    CHECK(status("GET / HTTP/1.1\r\nHost: db1\r\n\r\n") == 404);
    CHECK(status("GET /metricsx HTTP/1.1\r\nHost: db1\r\n\r\n") == 404);
    CHECK(status("PUT /metrics HTTP/1.1\r\nHost: db1\r\n\r\n") == 405);
    CHECK(status("PUT /metrics HTTP/1.1\r\nHost: evil\r\n\r\n") == 421);
    CHECK(status("GET http://evil/metrics HTTP/1.1\r\nHost: db1\r\n\r\n") == 421);
    CHECK(status("GET /metrics HTTP/3\r\nHost: db1\r\n\r\n") == 505);
    for (const std::string_view head :
         {"", "\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics x HTTP/1.1\r\nHost: db1\r\n\r\n",
          " /metrics HTTP/1.1\r\nHost: db1\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\n",
          "GET /metrics HTTP/1.1\r\nHost: db1\r\nHost: db1\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost : db1\r\n\r\n",
          "GET /metrics HTTP/1.1\r\nHost: db1\r\n x\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: db1\r\nx\r\n\r\n",
          "GET /metrics HTTP/1.1\r\nHost: db\x01\r\n\r\n", "G\x7fT /metrics HTTP/1.1\r\n\r\n"})
        CHECK_MESSAGE(status(head) == 400, head);
}

TEST_CASE("scrape request: where it ends, cut at every byte") {
    const std::string_view whole = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (size_t n = 0; n < whole.size(); ++n) {
        CHECK(!end_of_head(whole.substr(0, n)));
        CHECK((status(whole.substr(0, n)) != 200 || n >= whole.size() - 4));
    }
    CHECK(end_of_head(whole) == whole.size());
    CHECK(end_of_head("a\n\nb") == 3);
    CHECK(end_of_head("a\r\n\r\nb") == 5);
}

TEST_CASE("scrape request: an answer's head") {
    CHECK(answer_head(405, 3).find("\r\nAllow: GET, HEAD\r\n") != std::string::npos);
    CHECK(answer_head(200, 12).find("HTTP/1.1 200 OK\r\n") == 0);
    CHECK(answer_head(200, 12).find("\r\nContent-Length: 12\r\n") != std::string::npos);
    CHECK(explanation(421).find("--prometheus NAME:PORT") != std::string_view::npos);
}
