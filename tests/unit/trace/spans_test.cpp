// Records in, spans out: functions and USDT probes, in text and in JSON.
#include "programs/trace/spans.h"

#include <cstring>

#include "programs/render/json_line.h"
#include "programs/trace/view.h"
#include "tests/support/test.h"
#include "tests/unit/export/events.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

constexpr uint64_t kStart = 1'000'000'000;

class Kept final : public SpanOutlet {
  public:
    void add(const telemetry::Span &span) override { spans.push_back(span); }
    void counts(const telemetry::PairingCounts &) override {}
    std::optional<telemetry::ExportReport> finish() override {
        telemetry::ExportReport out;
        out.added = spans.size();
        out.sent = spans.size() - 1;
        out.dropped = 1;
        return out;
    }
    std::vector<telemetry::Span> spans;
};

// A function work(n) of a program, the system call openat, and the probes app:job__start(n), app:job__done and app:idle.
struct Trace {
    std::vector<ProbeSite> places{5};
    Layout call, result;
    RunInfo run;
    std::string out;
    render::Writer writer{out};
    test::CountingIds ids;
    Kept kept;
    SpanReport report;
    SpanOptions spans;
    ViewOptions options;
    std::optional<View> view;

    explicit Trace(Format format, bool calls = true) {
        const Type number{"long", Show::integer, 8, true};
        for (ProbeSite &place : places) {
            place.kind = ProbeKind::usdt;
            place.category = "app";
            place.signature = {true, false, {{"n", number}}, number};
        }
        places[0].kind = ProbeKind::uprobe;
        places[0].file = "/x/prog";
        places[0].function = "work";
        places[1].kind = ProbeKind::syscall;
        places[1].function = "openat";
        places[2].function = "job__start";
        places[3].function = "job__done";
        places[4].function = "idle";
        call.columns.resize(1);
        call.size = sizeof(Header) + 8;
        result = call;
        result.is_result = true;
        if (calls) result.columns.clear();
        result.size += calls ? 0 : 8;
        run.start_wall_ns = 1'736'936'745'000'000'000; // 2025-01-15T10:25:45Z
        spans.ids = &ids;
        spans.outlet = &kept;
        spans.report = &report;
        spans.pairing.expire_ns = 1'000'000;
        options.format = format;
        options.calls = calls;
        options.returns = calls;
        options.quiet = true;
        options.spans = &spans;
        view.emplace(options, places, run, nullptr, kStart, writer);
        REQUIRE(view->start());
    }
    void send(uint32_t place, What what, uint64_t t_ns, std::vector<uint64_t> values, uint64_t duration = 0) {
        Event event;
        event.layout = what == What::result ? &result : &call;
        std::vector<std::byte> record(event.layout->size);
        event.header.time = kStart + t_ns;
        event.header.duration = duration;
        event.header.pid = event.header.tid = 77;
        event.header.place = place;
        event.header.what = what;
        std::memcpy(event.header.comm, "prog", 4);
        std::memcpy(record.data(), &event.header, sizeof(Header));
        std::memcpy(record.data() + sizeof(Header), values.data(), values.size() * 8);
        event.place = &places[place];
        event.record = record;
        view->event(event);
    }
    void finish() { REQUIRE(view->finish(std::vector<PlaceCounts>(places.size()), {})); }
};

} // namespace

TEST_CASE("trace spans: probes and functions, one within the other") {
    Trace t(Format::text);
    t.send(2, What::call, 1'000, {5});
    t.send(0, What::call, 2'000, {uint64_t(-6)});
    t.send(0, What::result, 3'500, {9});
    t.send(4, What::call, 3'600, {1});
    t.send(3, What::call, 4'000, {7});
    t.finish();
    CHECK(t.out == "[2025-01-15T10:25:45.000] prog[77]: prog:work 1.5 us trace=02000000 rawbpf.arg.n=-6 rawbpf.return=9\n"
                   "[2025-01-15T10:25:45.000] prog[77]: app:job 3.0 us trace=02000000 rawbpf.arg.n=5 rawbpf.end.n=7\n");
    REQUIRE(t.kept.spans.size() == 2);
    CHECK(t.kept.spans[0].parent == t.kept.spans[1].span_id);
    CHECK(t.report.pairing.ignored == 1);
    CHECK(t.report.lost() == 1);
    CHECK(t.report.text() == "2 spans; 1 events that neither begin nor end one; 1 sent in 0 requests; 1 lost: 1 as the queue was "
                             "full");
}

TEST_CASE("trace spans: a start without an end expires by the clock, without an event") {
    Trace t(Format::text);
    t.send(2, What::call, 1'000, {5});
    REQUIRE(t.view->flush(kStart + 900'000));
    CHECK(t.out.empty());
    REQUIRE(t.view->flush(kStart + 200'000'000));
    CHECK(t.out == "[2025-01-15T10:25:45.000] prog[77]: app:job (no end) trace=02000000 rawbpf.arg.n=5\n");
    CHECK(t.kept.spans.at(0).end == t.kept.spans[0].start);
    t.finish();
    CHECK(t.report.pairing.expired == 1);
}

TEST_CASE("trace spans: a system call that the kernel paired, and failed") {
    Trace t(Format::text, false);
    t.send(1, What::result, 5'000, {3, uint64_t(-2)}, 2'000);
    t.finish();
    CHECK(t.out == "[2025-01-15T10:25:45.000] prog[77]: openat 2.0 us ERROR trace=02000000 rawbpf.arg.n=3 rawbpf.return=-2 "
                   "error.type=\"ENOENT\"\n");
    REQUIRE(t.kept.spans.size() == 1);
    CHECK(t.kept.spans[0].start == t.run.start_wall_ns + 3'000);
}

TEST_CASE("trace spans: json, fields in their order") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    Trace t(Format::json);
    t.send(2, What::call, 1'000, {uint64_t{1} << 60});
    t.send(3, What::call, 4'000, {7});
    t.finish();
    const size_t line = t.out.find('\n') + 1;
    CHECK(
        t.out.substr(line, t.out.find('\n', line) - line) ==
        R"({"type":"span","time":"2025-01-15T10:25:45.000001000Z","t_ns":1000,"trace_id":"02000000000000000300000000000000",)"
        R"("span_id":"0100000000000000","parent_id":null,"name":"app:job","kind":"internal","duration_ns":3000,"status":"unset",)"
        R"("attributes":{"rawbpf.arg.n":"1152921504606846976","process.pid":77,"thread.id":77,"process.executable.name":"prog",)"
        R"("rawbpf.end.n":7}})");
    CHECK(t.out.ends_with(
        R"("functions":{},"spans":{"made":1,"paired":1,"points":0,"expired":0,"starts_dropped":0,"ends_alone":0,"ignored":0,)"
        R"("export":{"sent":0,"rejected":0,"dropped":1,"failed":{},"requests":0,"retries":0}}})"
        "\n"));
}

TEST_CASE("trace spans: which places make any") {
    Trace t(Format::text);
    std::vector<bool> makes;
    for (const ProbeSite &place : t.places) makes.push_back(makes_spans(place));
    CHECK(makes == std::vector<bool>{true, true, true, true, false});
}
