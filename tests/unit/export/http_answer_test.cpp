// Answers of receivers, in order and not.
#include "programs/export/http_answer.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::telemetry;

namespace {

using State = AnswerReader::State;

// Read in pieces of so many bytes.
AnswerReader read_in(std::string_view text, size_t piece, bool ends = false) {
    AnswerReader out;
    for (size_t at = 0; at < text.size() && out.state() == State::more; at += piece) out.feed(text.substr(at, piece));
    if (ends) out.end();
    return out;
}

struct Case {
    std::string_view text;
    int status;
    std::string_view body;
    bool keeps_open;
};
constexpr Case kGood[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", true},
    {"HTTP/1.1 200\r\ncontent-length:\t2 \nX\n\n{}", 200, "{}", true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}", false},
    {"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", 200, "", false},
    {"HTTP/1.1 204 No\r\nContent-Length: 7\r\n\r\n", 204, "", true},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 9\r\n\r\nHTTP/1.1 400 No\r\nContent-Length: 1\r\n\r\nx",
     400, "x", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2;a=b\r\nab\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n", 200,
     "ab0123456789", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 200, "", false},
    {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 200, "", true},
};
constexpr std::string_view kBad[] = {
    "SSH-2.0-x\r\n",
    "HTTP/2 200\r\n",
    "HTTP/1.1 20\r\n",
    "HTTP/1.1 2x0 OK\r\n",
    "HTTP/1.1 2000 OK\r\n",
    "HTTP/1.1 099 OK\r\n",
    "\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
};

} // namespace

TEST_CASE("http answer: what is in it, in pieces of any size") {
    for (const Case &one : kGood)
        for (size_t piece = 1; piece <= one.text.size(); ++piece) {
            AnswerReader reader = read_in(one.text, piece);
            REQUIRE_MESSAGE(reader.state() == State::done, one.text);
            CHECK(reader.answer().status == one.status);
            CHECK(reader.answer().body == one.body);
            CHECK(reader.answer().keeps_open == one.keeps_open);
        }
    AnswerReader reader = read_in("HTTP/1.1 503 no\r\nRETRY-AFTER: 7\r\nContent-Type: a/b\r\n\r\nwords", 5);
    CHECK(reader.state() == State::more); // until the connection ends
    CHECK(reader.end() == State::done);
    CHECK(reader.answer().retry_after == "7");
    CHECK(reader.answer().content_type == "a/b");
    CHECK(reader.answer().body == "words");
    CHECK(!reader.answer().keeps_open);
}

TEST_CASE("http answer: cut at every byte it isn't complete") {
    for (const Case &one : kGood)
        for (size_t n = 0; n < one.text.size(); ++n) {
            AnswerReader reader = read_in(one.text.substr(0, n), 3, true);
            CHECK_MESSAGE(reader.state() == State::failed, one.text.substr(0, n));
            CHECK(reader.began() == (n > 0));
        }
}

TEST_CASE("http answer: what is none") {
    for (const std::string_view text : kBad)
        for (const size_t piece : {size_t{1}, text.size()}) CHECK_MESSAGE(read_in(text, piece).state() == State::failed, text);
    // What comes behind an answer was asked for by nobody.
    AnswerReader more = read_in("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", 1000);
    CHECK(more.state() == State::done);
    CHECK(!more.answer().keeps_open);
}

TEST_CASE("http answer: bounds") {
    for (const std::string_view endless : {"X: y\r\n", "X", "HTTP/1.1 100 Continue\r\n\r\n"}) {
        AnswerReader reader;
        if (endless[0] == 'X') reader.feed("HTTP/1.1 200 OK\r\n");
        size_t fed = 0;
        while (reader.feed(endless) == State::more) REQUIRE((fed += endless.size()) <= kMostHead);
        CHECK(reader.state() == State::failed);
        CHECK(reader.problem().find("headers") != std::string_view::npos);
    }
    const std::string piece(10000, 'x');
    for (const std::string_view head : {"HTTP/1.1 400 No\r\n\r\n", "HTTP/1.1 400 No\r\nContent-Length: 99999999999\r\n\r\n"}) {
        AnswerReader reader = read_in(head, 1000);
        size_t fed = 0;
        while (reader.feed(piece) == State::more) REQUIRE((fed += piece.size()) <= kMostAnswer);
        CHECK(reader.state() == State::done); // its status was said
        CHECK(reader.answer().body.size() == kMostAnswer);
        CHECK(!reader.answer().keeps_open);
    }
}
