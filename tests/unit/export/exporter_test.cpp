// Batches, retries and the ledger, with a receiver that does as it is told and a clock that stands still.
#include "programs/export/exporter.h"

#include "tests/support/test.h"
#include "tests/unit/export/events.h"

using namespace rawbpf::telemetry;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Answer status(int code, std::string body = {}, std::string retry_after = {}) {
    Answer answer;
    answer.what = Answer::What::answered;
    answer.status = code;
    answer.body = std::move(body);
    answer.content_type = "application/x-protobuf";
    answer.retry_after = std::move(retry_after);
    return answer;
}
Answer without(Answer::What what) {
    Answer answer;
    answer.what = what;
    answer.detail = "no luck";
    return answer;
}

struct Told final : Transport {
    std::deque<Answer> answers; ///< then 200s
    std::vector<std::string> bodies;
    std::vector<uint64_t> timeouts, ends;
    void end_by(uint64_t deadline_ns) override { ends.push_back(deadline_ns); }
    Answer post(std::string_view body, std::string_view type, uint64_t timeout_ns) override {
        CHECK(type == "application/x-protobuf");
        bodies.emplace_back(body);
        timeouts.push_back(timeout_ns);
        if (answers.empty()) return status(200);
        Answer next = std::move(answers.front());
        answers.pop_front();
        return next;
    }
};

struct Setup {
    Told told;
    rawbpf::test::CountingIds random;
    uint64_t now = 1000 * kSecond;
    Exporter exporter;
    explicit Setup(ExporterOptions options = {}) : exporter({}, told, random, options, [this] { return now; }) {}

    void add(int n) {
        for (int i = 0; i < n; ++i) (void)exporter.add(Span());
    }
    /// Polls, letting the time pass that the exporter asks for.
    void run(int most = 1000) {
        for (; most > 0; --most) {
            const std::optional<uint64_t> wait = exporter.poll();
            if (!wait) return;
            now += *wait;
        }
    }
    ExportReport report() {
        ExportReport r = exporter.report();
        CHECK(r.added == r.sent + r.lost() + r.waiting);
        return r;
    }
};

} // namespace

TEST_CASE("exporter: batches by count and by time") {
    ExporterOptions options;
    options.batch = 3;
    Setup s(options);
    CHECK(s.exporter.poll() == std::nullopt);
    s.add(2);
    CHECK_FALSE(s.exporter.has_batch());
    CHECK(s.exporter.poll() == kSecond);
    s.now += kSecond / 4;
    CHECK(s.exporter.poll() == kSecond / 4 * 3);
    CHECK(s.told.bodies.empty());
    s.add(5);
    CHECK(s.exporter.has_batch());
    CHECK(s.exporter.poll() == 0); // three of seven, and there is another batch
    CHECK(s.exporter.poll() == kSecond);
    CHECK(s.told.bodies.size() == 2);
    CHECK(s.report().sent == 6);
    CHECK(s.report().waiting == 1);
    s.run();
    CHECK(s.told.bodies.size() == 3);
    CHECK(s.report().sent == 7);
    CHECK(s.report().complete());
    CHECK(s.report().requests == 3);
}

TEST_CASE("exporter: a full queue drops the new ones, and counts them") {
    ExporterOptions options;
    options.queue = 10;
    Setup s(options);
    s.add(10);
    CHECK_FALSE(s.exporter.add(Span()));
    s.add(4);
    CHECK(s.report().dropped == 5);
    CHECK_FALSE(s.report().complete());
    s.run();
    CHECK(s.report().sent == 10);
    CHECK(s.report().lost() == 5);
}

TEST_CASE("exporter: a full queue is worth waiting for while the receiver takes batches") {
    ExporterOptions options;
    options.queue = 10;
    options.batch = 5;
    Setup s(options);
    s.add(9);
    CHECK_FALSE(s.exporter.worth_waiting()); // there is room
    s.add(1);
    CHECK(s.exporter.worth_waiting()); // nobody has been asked yet
    s.told.answers = {status(200), status(503, {}, "60")};
    (void)s.exporter.poll();
    CHECK_FALSE(s.exporter.worth_waiting());
    s.add(5);
    CHECK(s.exporter.worth_waiting());
    s.now += kSecond / 4; // and then nothing was taken for long
    CHECK_FALSE(s.exporter.worth_waiting());
    (void)s.exporter.poll(); // 503
    s.add(5);
    CHECK_FALSE(s.exporter.worth_waiting());
    s.now += 60 * kSecond;
    (void)s.exporter.poll();
    CHECK(s.exporter.worth_waiting());
    CHECK(s.report().dropped == 0);
}

TEST_CASE("exporter: what is tried again, and after how long") {
    for (int code : {429, 502, 503, 504}) {
        Setup s;
        s.told.answers = {status(code), status(code)};
        s.add(1);
        s.now += kSecond;
        const std::optional<uint64_t> first = s.exporter.poll();
        REQUIRE(first);
        CHECK(*first >= kSecond / 2);
        CHECK(*first <= kSecond);
        CHECK(s.exporter.poll() == *first); // not before its time
        CHECK(s.told.bodies.size() == 1);
        s.now += *first;
        const std::optional<uint64_t> second = s.exporter.poll();
        REQUIRE(second);
        CHECK(*second >= kSecond);
        CHECK(*second <= 2 * kSecond);
        s.run();
        CHECK(s.told.bodies.size() == 3);
        CHECK(s.told.bodies[2] == s.told.bodies[0]);
        CHECK(s.report().sent == 1);
        CHECK(s.report().retries == 2);
        CHECK(s.report().complete());
    }
    for (int code : {400, 401, 404, 413, 500, 501, 301, 199}) {
        Setup s;
        s.told.answers = {status(code, "because")};
        s.add(2);
        s.run();
        CHECK(s.told.bodies.size() == 1);
        CHECK(s.report().failed == std::map<std::string, uint64_t>{{"HTTP " + std::to_string(code), 2}});
        const std::string redirect = code == 301 ? ", and redirects aren't followed: name the place that it points to" : "";
        CHECK(s.report().last_problem == "the receiver answered HTTP " + std::to_string(code) + redirect + ": because");
    }
}

TEST_CASE("exporter: Retry-After is kept to") {
    Setup s;
    s.told.answers = {status(503, "", "120"), status(429, "", "nonsense")};
    s.add(1);
    s.now += kSecond;
    CHECK(s.exporter.poll() == 120 * kSecond);
    s.now += 120 * kSecond;
    const std::optional<uint64_t> wait = s.exporter.poll();
    REQUIRE(wait);
    CHECK(*wait <= 2 * kSecond); // its own rule again
    s.run();
    CHECK(s.report().sent == 1);
}

TEST_CASE("exporter: a receiver that is down") {
    ExporterOptions options;
    options.queue = 4;
    options.give_up_ns = 60 * kSecond;
    Setup s(options);
    for (int i = 0; i < 100; ++i) s.told.answers.push_back(without(i % 2 ? Answer::What::refused : Answer::What::timed_out));
    s.add(2);
    const uint64_t start = s.now;
    s.run(2);
    s.add(6); // two more than there is room for
    s.run(100);
    CHECK(s.now - start < 200 * kSecond);
    const ExportReport r = s.report();
    CHECK(r.sent == 0);
    CHECK(r.dropped == 2);
    uint64_t failed = 0;
    for (const auto &[reason, n] : r.failed) {
        CHECK((reason == "connection refused" || reason == "timed out"));
        failed += n;
    }
    CHECK(failed == 6);
    CHECK(r.waiting == 0);
    CHECK(r.requests < 30); // the waits grow
    CHECK(r.last_problem == "no luck");
    s.told.answers.clear();
    s.add(1); // and when it is back
    s.run();
    CHECK(s.report().sent == 1);
    Setup never;
    never.told.answers = {without(Answer::What::failed)};
    never.add(1);
    never.run();
    CHECK(never.told.bodies.size() == 1);
    CHECK(never.report().failed.at("not sendable") == 1);
}

TEST_CASE("exporter: a partial success is no reason to try again") {
    Setup s;
    s.told.answers = {status(200, std::string("\x0a\x06\x08\x03\x12\x02no", 8)),
                      status(200, std::string("\x0a\x06\x08\x63\x12\x02no", 8)), status(200, "<html>welcome</html>")};
    s.add(5);
    s.run();
    CHECK(s.report().rejected == 3);
    CHECK(s.report().sent == 2);
    CHECK(s.report().last_problem == "no");
    CHECK_FALSE(s.report().complete());
    s.add(5);
    s.run();
    CHECK(s.report().rejected == 8); // 99 of 5 aren't more than 5
    s.add(1);
    s.run();
    CHECK(s.report().sent == 3);
    CHECK(s.report().last_problem.find("the receiver's answer") != std::string::npos);
    CHECK(s.told.bodies.size() == 3);
}

TEST_CASE("exporter: the end has a time") {
    ExporterOptions options;
    options.batch = 2;
    Setup s(options);
    s.add(3);
    s.exporter.stop_by(s.now + 5 * kSecond);
    s.run(); // nothing waits for its batch to fill
    CHECK(s.report().sent == 3);
    Setup down(options);
    for (int i = 0; i < 100; ++i) down.told.answers.push_back(status(503, "", "3600"));
    down.add(5);
    down.exporter.stop_by(down.now + 5 * kSecond);
    const uint64_t start = down.now;
    down.run();
    CHECK(down.now - start <= 5 * kSecond);
    CHECK(down.report().failed.size() <= 2);
    CHECK(down.report().lost() == 5);
    CHECK(down.report().waiting == 0);
    Setup late(options);
    late.add(1);
    late.now += 10 * kSecond;
    late.exporter.stop_by(late.now + kSecond / 2);
    late.run();
    CHECK(late.told.timeouts.at(0) == kSecond / 2); // no request goes on for longer
    // The one under way is told; the end comes only nearer.
    const uint64_t end = late.now + kSecond;
    late.exporter.stop_by(end);
    late.exporter.stop_by(end - kSecond / 2);
    CHECK(late.told.ends.at(late.told.ends.size() - 1) == end - kSecond / 2);
}

TEST_CASE("exporter: dates in Retry-After") {
    constexpr uint64_t kNow = 1'795'205'999; // 2026-11-20 20:19:59
    CHECK(retry_after_seconds("Fri, 20 Nov 2026 20:20:00 GMT", kNow) == 1);
    CHECK(retry_after_seconds("Fri, 20 Nov 2026 20:19:00 GMT", kNow) == 0);
    CHECK(retry_after_seconds("0", kNow) == 0);
    CHECK(retry_after_seconds("99999999999", kNow) == 86400);
    for (std::string_view bad : {"", "-1", "1.5", "soon", "Fri, 20 Nov 2026 20:20:00 CET", "Fri, 31 Feb 2026 20:20:00 GMT",
                                 "Fri, 20 anF 2026 20:20:00 GMT", "Fri, 20 Nov 2026 25:20:00 GMT",
                                 "Fri, xx Nov 2026 20:20:00 GMT", "Fri, 20 Xxx 2026 20:20:00 GMT", "99999999999999999999999"})
        CHECK(retry_after_seconds(bad, kNow) == std::nullopt);
}
