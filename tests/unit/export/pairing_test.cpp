// Starts and ends find each other, and none is lost without being counted.
#include "programs/export/pairing.h"

#include <set>

#include "runtime/sys/invoke.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/test.h"
#include "tests/unit/export/events.h"

using namespace rawbpf::telemetry;
using rawbpf::test::CountingIds;
using rawbpf::test::event;

namespace {

// starts = paired + expired + dropped + open; ends = paired + orphans
void check_sums(const Pairing &pairing) {
    const PairingCounts &n = pairing.counts();
    CHECK(n.starts == n.paired + n.expired + n.dropped + pairing.open());
    CHECK(n.ends == n.paired + n.orphans);
}

} // namespace

TEST_CASE("pairing: nested in a thread") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    pairing.event(event("p", "a__start", 100), out);
    pairing.event(event("p", "b__start", 110), out);
    pairing.event(event("p", "b__done", 120), out);
    pairing.event(event("p", "c__start", 130), out);
    pairing.event(event("p", "c__done", 140), out);
    pairing.event(event("p", "a__done", 200), out);
    REQUIRE(out.size() == 3);
    const Span &b = out[0], &c = out[1], &a = out[2];
    CHECK(a.name == "p:a");
    CHECK(a.start == 100);
    CHECK(a.end == 200);
    CHECK_FALSE(is_set(a.parent));
    CHECK(is_set(a.trace_id));
    CHECK(b.parent == a.span_id);
    CHECK(c.parent == a.span_id);
    CHECK(b.trace_id == a.trace_id);
    CHECK(b.span_id != c.span_id);
    pairing.event(event("p", "a__start", 300), out);
    pairing.event(event("p", "a__done", 310), out);
    CHECK(out[3].trace_id != a.trace_id);
    CHECK(pairing.open() == 0);
    check_sums(pairing);
}

TEST_CASE("pairing: recursion, threads, processes, providers") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    const auto at = [&](uint32_t pid, uint32_t tid, std::string_view provider, std::string_view name, uint64_t time) {
        ProbeEvent one = event(provider, name, time);
        one.pid = pid;
        one.tid = tid;
        pairing.event(one, out);
    };
    at(1, 1, "p", "a__start", 10);
    at(1, 1, "p", "a__start", 20);
    at(1, 2, "p", "a__start", 30);
    at(2, 1, "p", "a__start", 40); // in another pid namespace threads have the same numbers
    at(1, 1, "q", "a__done", 50);  // another provider's
    CHECK(out.empty());
    at(1, 1, "p", "a__done", 60);
    at(1, 1, "p", "a__done", 70);
    at(1, 2, "p", "a__done", 80);
    at(2, 1, "p", "a__done", 90);
    REQUIRE(out.size() == 4);
    CHECK(out[0].start == 20);
    CHECK(out[1].start == 10);
    CHECK(out[0].parent == out[1].span_id);
    CHECK(out[2].start == 30);
    CHECK(out[3].start == 40);
    CHECK_FALSE(is_set(out[3].parent));
    CHECK(pairing.counts().orphans == 1);
    check_sums(pairing);
}

TEST_CASE("pairing: a goroutine moves between threads") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    const auto at = [&](uint64_t goroutine, uint32_t tid, std::string_view name, uint64_t time) {
        ProbeEvent one = event("net_http", name, time);
        one.goroutine = goroutine;
        one.tid = tid;
        pairing.event(one, out);
    };
    at(0xc000000180, 7, "server_request_start", 1);
    at(0xc000000300, 7, "server_request_start", 2); // the thread goes on with another
    at(0xc000000180, 8, "server_request_end", 5);
    at(0xc000000300, 7, "server_request_end", 6);
    REQUIRE(out.size() == 2);
    CHECK(out[0].start == 1);
    CHECK_FALSE(is_set(out[1].parent));
    CHECK(rawbpf::test::text_of(out[0], "rawbpf.goroutine") == "0xc000000180");
    // A goroutine's number may be a thread's.
    at(7, 9, "server_request_start", 10);
    at(0, 7, "server_request_end", 11);
    CHECK(pairing.counts().orphans == 1);
}

TEST_CASE("pairing: interleaved pairs, and ends that never came") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    pairing.event(event("p", "a__start", 10), out);
    pairing.event(event("p", "x__start", 20), out);
    pairing.event(event("p", "a__done", 30), out); // x is still open, and nobody's parent
    pairing.event(event("p", "b__start", 40), out);
    pairing.event(event("p", "b__done", 50), out);
    pairing.event(event("p", "x__done", 60), out);
    REQUIRE(out.size() == 3);
    CHECK(out[0].name == "p:a");
    CHECK(out[1].name == "p:b");
    CHECK_FALSE(is_set(out[1].parent));
    CHECK(out[2].name == "p:x");
    CHECK(out[2].parent == out[0].span_id);
    check_sums(pairing);
}

TEST_CASE("pairing: starts expire, are counted and given out") {
    CountingIds ids;
    PairingOptions options;
    options.expire_ns = 100;
    Pairing pairing(ids, options);
    std::vector<Span> out;
    pairing.event(event("p", "a__start", 1000), out);
    pairing.event(event("p", "b__start", 1050), out);
    pairing.expire(1099, out);
    pairing.expire(5, out); // a clock that was set back
    CHECK(out.empty());
    pairing.expire(1100, out);
    REQUIRE(out.size() == 1);
    CHECK(out[0].name == "p:a");
    CHECK(out[0].start == 1000);
    CHECK(out[0].end == 1000);
    CHECK(*out[0].find("rawbpf.unpaired") == Value(true));
    pairing.event(event("p", "a__done", 1120), out); // too late
    CHECK(pairing.counts().orphans == 1);
    pairing.event(event("p", "b__done", 1130), out);
    CHECK(out.size() == 2);
    CHECK(out[1].find("rawbpf.unpaired") == nullptr);
    pairing.event(event("p", "c__start", 1140), out);
    ProbeEvent other = event("p", "c__start", 1150);
    other.pid = 6;
    pairing.event(other, out);
    pairing.end_process(5, out);
    CHECK(out.size() == 3);
    CHECK(pairing.open() == 1);
    pairing.end(out);
    CHECK(out.size() == 4);
    CHECK(pairing.counts().expired == 3);
    check_sums(pairing);
}

TEST_CASE("pairing: bounded, by all and by thread") {
    CountingIds ids;
    PairingOptions options;
    options.most_open = 10;
    options.deepest = 4;
    Pairing pairing(ids, options);
    std::vector<Span> out;
    for (uint32_t tid = 0; tid < 5; ++tid)
        for (uint64_t i = 0; i < 6; ++i) {
            ProbeEvent one = event("p", "a__start", 10 * tid + i);
            one.tid = tid;
            pairing.event(one, out);
            CHECK(pairing.open() <= 10);
        }
    CHECK(out.empty());
    CHECK(pairing.counts().dropped == 20);
    check_sums(pairing);
    ProbeEvent last = event("p", "a__done", 100);
    last.tid = 4;
    pairing.event(last, out);
    REQUIRE(out.size() == 1);
    CHECK(out[0].start == 45);
    options.most_open = 0;
    Pairing none(ids, options);
    none.event(event("p", "a__start", 1), out);
    CHECK(none.counts().dropped == 1);
    check_sums(none);
}

TEST_CASE("pairing: points, and events that are nobody's") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    pairing.event(event("net_http", "server_request_start", 10), out);
    const Argument query[] = {{"query", std::string_view("select 1")}};
    pairing.event(event("sql", "query", 20, query), out);
    pairing.event(event("libstdcxx", "throw", 25), out);
    pairing.event(event("net_http", "server_request_end", 5), out); // a record that was overtaken
    REQUIRE(out.size() == 2);
    CHECK(out[0].name == "SELECT");
    CHECK(out[0].start == 20);
    CHECK(out[0].end == 20);
    CHECK(out[0].parent == out[1].span_id);
    CHECK(out[1].end == out[1].start);
    CHECK(pairing.counts().points == 1);
    CHECK(pairing.counts().ignored == 1);
}

TEST_CASE("span ids: never zero, never twice") {
    class Zeros final : public IdSource {
      public:
        uint64_t next() override { return ++calls_ < 4 ? 0 : calls_; }

      private:
        uint64_t calls_ = 0;
    } zeros;
    CHECK(is_set(make_span_id(zeros)));
    auto ids = random_ids();
    REQUIRE(ids);
    std::set<SpanId> seen;
    for (int i = 0; i < 10000; ++i) seen.insert(make_span_id(**ids));
    CHECK(seen.size() == 10000);
    auto others = random_ids();
    REQUIRE(others);
    CHECK(make_trace_id(**ids) != make_trace_id(**others));
    rawbpf::test::FakeKernel kernel;
    kernel.fail(1, ENOSYS);
    auto none = random_ids();
    REQUIRE_FALSE(none);
    CHECK(none.error().os == ENOSYS);
}

TEST_CASE("pairing: both ends in one event, within what is open; and points in time") {
    CountingIds ids;
    Pairing pairing(ids);
    std::vector<Span> out;
    pairing.event(event("app", "job__start", 100), out);
    ProbeEvent whole = event("", "openat", 180);
    whole.phase = Phase::whole;
    whole.duration = 50;
    whole.result = int64_t{-2};
    whole.error = "ENOENT";
    pairing.event(whole, out);
    ProbeEvent point = event("sched", "sched_switch", 190);
    point.phase = Phase::point;
    pairing.event(point, out);
    pairing.event(event("app", "job__done", 200), out);
    REQUIRE(out.size() == 3);
    CHECK(out[0].start == 130);
    CHECK(out[0].end == 180);
    CHECK(out[0].name == "openat");
    CHECK(out[0].status == Status::error);
    CHECK(rawbpf::test::text_of(out[0], "error.type") == "ENOENT");
    CHECK(rawbpf::test::number_of(out[0], "rawbpf.return") == -2);
    CHECK(out[1].start == out[1].end);
    CHECK(out[1].name == "sched:sched_switch");
    for (size_t i : {0u, 1u}) {
        CHECK(out[i].parent == out[2].span_id);
        CHECK(out[i].trace_id == out[2].trace_id);
    }
    CHECK(pairing.counts().made() == 3);
}
