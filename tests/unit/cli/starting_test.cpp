// What a start that takes long says, and when.
#include "cli/starting.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::cli;

namespace {
constexpr uint64_t kSecond = 1'000'000'000, kStart = 500 * kSecond;
constexpr LongStep::State kAttaching{"attaching", "functions", 1200, 5000};
} // namespace

TEST_CASE("starting: on a terminal a line from the first second on, that changes and goes") {
    StartLine line("rawbpf trace", true, kStart);
    CHECK(line.next_ns() == kStart + kSecond);
    CHECK(line.at(kStart + kSecond - 1, kAttaching).empty());
    CHECK(line.at(kStart + kSecond, kAttaching) == "\rrawbpf trace: attaching: 1,200 of 5,000 functions, 1 s\x1b[K");
    CHECK(line.at(kStart + kSecond + 1, kAttaching).empty()); // not more often than one can read
    CHECK(line.at(line.next_ns(), kAttaching) == "\rrawbpf trace: attaching: 1,200 of 5,000 functions, 1 s\x1b[K");
    CHECK(line.at(kStart + 3 * kSecond, {"loading"}) == "\rrawbpf trace: loading, 3 s\x1b[K");
    CHECK(line.at(kStart + 4 * kSecond, {}) == "\rrawbpf trace: starting, 4 s\x1b[K");
    CHECK(line.at(kStart + 5 * kSecond, kAttaching, 30) == "\rrawbpf trace: attaching: 1...\x1b[K"); // never two lines
    CHECK(line.away() == "\r\x1b[K");
    CHECK(line.away().empty());
}

TEST_CASE("starting: elsewhere one line, once; a short start says nothing") {
    StartLine line("rawbpf profile", false, kStart);
    CHECK(line.at(kStart + kSecond / 2, kAttaching).empty());
    CHECK(line.at(kStart + kSecond, {"finding", "places", 0, 1}) == "rawbpf profile: finding, 1 s\n");
    CHECK(line.next_ns() == UINT64_MAX);
    CHECK(line.at(kStart + 100 * kSecond, kAttaching).empty());
    CHECK(line.away().empty());
    CHECK(StartLine("rawbpf profile", true, kStart).away().empty());
}

TEST_CASE("starting: steps within steps") {
    const auto is = [](const char *doing, uint32_t done, uint32_t total) {
        const LongStep::State now = LongStep::now();
        return (now.doing ? std::string_view(now.doing) : "") == doing && now.done == done && now.total == total;
    };
    static int heard;
    heard = 0;
    const bool was_free = LongStep::listen([] { ++heard; }) == nullptr;
    CHECK(was_free);
    {
        LongStep outer("loading", "programs", 3);
        outer.advance();
        {
            LongStep inner("attaching", "functions", 5000);
            inner.advance(1200);
            CHECK(is("attaching", 1200, 5000));
        }
        CHECK(is("loading", 1, 3));
        CHECK(heard == 4);
    }
    LongStep::listen(nullptr);
    CHECK_FALSE(LongStep::now().doing);
}
