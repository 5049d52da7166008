// Events to text, in every format: records made by hand in, golden text out.
#include "programs/trace/view.h"

#include <cstring>

#include "programs/render/json_line.h"
#include "programs/render/protobuf.h"
#include "runtime/sys/terminal.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;
using rawbpf::render::Message;

namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint32_t kPid = 4'194'305; // no process has it: the largest is 4194304

// A trace of two functions of a program: outer(a, name) and inner(n).
struct Trace {
    std::vector<ProbeSite> places;
    Layout call_outer, call_inner, result;
    RunInfo run;
    std::string out;
    render::Writer writer{out};
    ViewOptions options;
    std::optional<View> view;

    explicit Trace(ViewOptions o) : options(o) {
        Type number{"long", Show::integer, 8, true};
        ProbeSite outer;
        outer.kind = ProbeKind::uprobe;
        outer.file = "/x/prog";
        outer.function = "outer";
        outer.signature.known = true;
        outer.signature.returns = number;
        ProbeSite inner = outer;
        inner.function = "inner";
        outer.signature.parameters = {{"a", number}, {"name", {"const char *", Show::text, 8, false}}};
        inner.signature.parameters = {{"n", number}};
        places = {outer, inner};
        call_outer.columns.resize(2);
        call_outer.columns[1].value.argument = 1;
        call_outer.columns[1].blob = 0;
        call_outer.blobs = {{1, Show::text, sizeof(Header) + 16, 16}};
        call_outer.size = sizeof(Header) + 16 + 4 + 16 + 4;
        call_inner.columns.resize(1);
        call_inner.size = sizeof(Header) + 8;
        result.is_result = true;
        result.size = sizeof(Header) + 8;
        run.command = {"rawbpf", "trace"};
        run.start_wall_ns = 1'736'936'745'000'000'000; // 2025-01-15T10:25:45Z
        view.emplace(options, places, run, nullptr, kStart, writer);
        REQUIRE(view->start());
    }

    void send(uint32_t tid, uint32_t place, What what, uint64_t t_ns, std::vector<uint64_t> values, std::string_view text = {}) {
        Event event;
        event.layout = what == What::result ? &result : place == 0 ? &call_outer : &call_inner;
        std::vector<std::byte> record(event.layout->size);
        event.header.time = kStart + t_ns;
        event.header.pid = kPid;
        event.header.tid = tid;
        event.header.place = place;
        event.header.what = what;
        memcpy(event.header.comm, "a b;c", 6);
        memcpy(record.data(), &event.header, sizeof(Header));
        memcpy(record.data() + sizeof(Header), values.data(), values.size() * 8);
        if (!event.layout->blobs.empty()) {
            const auto length = text.empty() ? -14 : static_cast<int32_t>(text.size() + 1);
            memcpy(record.data() + event.layout->blobs[0].offset, &length, 4);
            memcpy(record.data() + event.layout->blobs[0].offset + 4, text.data(), text.size());
        }
        event.place = &places[place];
        event.record = record;
        view->event(event);
    }
    void outer(uint64_t t, uint64_t a, std::string_view name, uint32_t tid = kPid) { send(tid, 0, What::call, t, {a, 16}, name); }
    void inner(uint64_t t, uint64_t n, uint32_t tid = kPid) { send(tid, 1, What::call, t, {n}); }
    void returns(uint64_t t, uint32_t place, uint64_t value, uint32_t tid = kPid) { send(tid, place, What::result, t, {value}); }
    std::string finish() {
        std::vector<PlaceCounts> counts(2);
        counts[0] = {{3, 1, 0, 0}, 2};
        counts[1] = {{4, 0, 0, 1}, 3};
        Ledger ledger{.fired = 7, .shown = 5, .filtered = 1, .sampled_out = 0, .lost = {{"ring_full", 1}}, .degraded = {}};
        REQUIRE(view->finish(counts, ledger));
        return out;
    }
};

ViewOptions of(Format format) {
    ViewOptions o;
    o.format = format;
    o.returns = true;
    o.quiet = true;
    return o;
}

} // namespace

TEST_CASE("trace view: graph, leaf calls on one line, recursion, missed returns") {
    ViewOptions o = of(Format::text);
    o.graph = true;
    Trace t(o);
    t.outer(1'000'000, 1, "x\"y");
    t.inner(1'001'000, 2);
    t.returns(1'002'500, 1, 3);
    t.inner(1'003'000, 4);
    t.inner(1'004'000, 5);
    t.returns(1'005'000, 1, 6);
    t.returns(1'010'000, 1, 7);
    t.inner(1'011'000, 8);                 // longjmp()
    t.returns(1'020'000, 0, uint64_t(-2)); // a program's: no error of the kernel's
    t.returns(1'021'000, 1, 9);            // called before we came
    t.inner(1'022'000, 10);
    CHECK(t.finish() == R"([2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]: outer(a=1, name="x\"y") {
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]:   inner(n=2) = 3  1.5 us;
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]:   inner(n=4) {
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]:     inner(n=5) = 6  1.0 us;
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]:   } inner = 7  7.0 us
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]:   inner(n=8) {
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]: } outer = -2  20.0 us
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]: } inner = 9
[2025-01-15T10:25:45.001] a\x20b\x3bc[4194305]: inner(n=10) {
)");
    CHECK(t.view->calls().missed_returns() == 1);
    CHECK(t.view->calls().missed_calls() == 1);
    CHECK(t.view->calls().still_open().size() == 1);
}

TEST_CASE("trace view: graph, threads in between, and a call that goes on for long") {
    ViewOptions o = of(Format::text);
    o.graph = true;
    Trace t(o);
    t.inner(0, 1, kPid);
    t.inner(1'000, 2, kPid + 1);
    t.returns(2'000, 1, 0, kPid);
    REQUIRE(t.view->flush(kStart + 3'000));
    CHECK(t.out.find("n=2") != std::string::npos); // another thread's event came behind it
    t.inner(4'000, 3, kPid + 1);
    REQUIRE(t.view->flush(kStart + 5'000));
    CHECK(t.out.find("n=3") == std::string::npos); // its return may be the next
    REQUIRE(t.view->flush(kStart + 500'000'000));
    CHECK(t.out.ends_with("(4194306)   inner(n=3) {\n"));
}

TEST_CASE("trace view: json, fields in their order") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    Trace t(of(Format::json));
    t.outer(1'000, 1, "hi");
    t.returns(3'000, 0, uint64_t(-2));
    const std::string out = t.finish();
    const size_t first = out.find('\n') + 1;
    CHECK(
        out.substr(first) ==
        R"({"type":"call","time":"2025-01-15T10:25:45.000001000Z","t_ns":1000,"comm":"a b;c","pid":4194305,"tid":4194305,"cpu":0,"probe":"uprobe:/x/prog:outer","function":"outer","args":[{"name":"a","type":"long","value":1},{"name":"name","type":"const char *","value":"hi"}],"ret":null,"duration_ns":null,"depth":0,"stack":null}
{"type":"return","time":"2025-01-15T10:25:45.000003000Z","t_ns":3000,"comm":"a b;c","pid":4194305,"tid":4194305,"cpu":0,"probe":"uprobe:/x/prog:outer","function":"outer","args":[],"ret":-2,"duration_ns":2000,"depth":0,"stack":null}
{"type":"ledger","fired":7,"shown":5,"filtered":1,"sampled_out":0,"lost":{"ring_full":1},"degraded":{},"functions":{"outer":{"fired":3,"shown":2,"filtered":1,"sampled_out":0,"lost":0},"inner":{"fired":4,"shown":3,"filtered":0,"sampled_out":0,"lost":1}}}
)");
}

TEST_CASE("trace view: chrome, whole calls, points in time, names of threads once") {
    if (!render::writes_json()) SKIP("this build writes no JSON");
    Trace t(of(Format::chrome));
    t.outer(1'000, 1, "hi");
    t.inner(2'000, 2);
    t.returns(2'500, 1, 3);
    t.inner(3'000, 4); // never returns
    t.returns(9'001, 0, 5);
    t.returns(10'000, 1, 6); // its call wasn't seen
    t.inner(11'000, 7, kPid + 1);
    const std::string out = t.finish();
    CHECK(out.starts_with(R"({"traceEvents":[
{"ph":"M","name":"process_name","pid":4194305,"tid":4194305,"args":{"name":"a b;c"}},
{"ph":"M","name":"thread_name","pid":4194305,"tid":4194305,"args":{"name":"a b;c"}},
{"ph":"X","name":"inner","cat":"uprobe","pid":4194305,"tid":4194305,"ts":2.000,"dur":0.500,"args":{"n":2,"ret":3}},
{"ph":"i","name":"inner","cat":"uprobe","pid":4194305,"tid":4194305,"ts":3.000,"s":"t","args":{"n":4,"returned":false}},
{"ph":"X","name":"outer","cat":"uprobe","pid":4194305,"tid":4194305,"ts":1.000,"dur":8.001,"args":{"a":1,"name":"hi","ret":5}},
{"ph":"i","name":"inner","cat":"uprobe","pid":4194305,"tid":4194305,"ts":10.000,"s":"t","args":{"ret":6}},
{"ph":"M","name":"thread_name","pid":4194305,"tid":4194306,"args":{"name":"a b;c"}},
{"ph":"i","name":"inner","cat":"uprobe","pid":4194305,"tid":4194306,"ts":11.000,"s":"t","args":{"n":7,"returned":false}}
],"displayTimeUnit":"ns","otherData":{"command":"rawbpf trace",)"));
    CHECK(out.ends_with(R"("fired":7,"shown":5,"filtered":1,"lost":1}})"
                        "\n"));
}

TEST_CASE("trace view: folded, each function's own time") {
    Trace t(of(Format::folded));
    for (int i = 0; i < 2; ++i) {
        const uint64_t at = 100'000 * static_cast<uint64_t>(i);
        t.outer(at + 1'000, 1, "hi");
        t.inner(at + 2'000, 2);
        t.inner(at + 3'000, 2);
        t.returns(at + 4'000, 1, 0);
        t.returns(at + 6'000, 1, 0);
        t.inner(at + 7'000, 2);
        t.returns(at + 9'000, 1, 0);
        t.returns(at + 11'000, 0, 0);
    }
    CHECK(t.finish() == "a\\x20b\\x3bc;outer 8000\n"
                        "a\\x20b\\x3bc;outer;inner 10000\n"
                        "a\\x20b\\x3bc;outer;inner;inner 2000\n");
}

TEST_CASE("trace view: functions of one name are told apart") {
    std::vector<ProbeSite> places(3);
    for (ProbeSite &place : places) place.kind = ProbeKind::uprobe, place.file = "/x/prog", place.function = "helper";
    places[0].address = 0x10;
    places[1].address = 0x20;
    places[2].function = "other";
    RunInfo run;
    std::string out;
    render::Writer writer(out);
    View view({}, places, run, nullptr, 0, writer);
    CHECK(view.names() == std::vector<std::string>{"uprobe:/x/prog:helper@0x10", "uprobe:/x/prog:helper@0x20", "other"});
}

TEST_CASE("trace view: what couldn't be read counts once an event") {
    Trace t(of(Format::text));
    t.outer(1'000, 1, "");
    t.outer(2'000, 1, "there");
    CHECK(t.finish().find("name=<fault>0x10") != std::string::npos);
    CHECK(t.view->unreadable() == 1);
}

TEST_CASE("trace view: live counts are drawn over the last ones") {
    ViewOptions o = of(Format::text);
    o.count = true;
    Trace t(o);
    std::vector<PlaceCounts> counts(2);
    counts[1].shown = 1;
    REQUIRE(t.view->redraw(counts, {24, 80}));
    CHECK(t.out == "inner               : 1 call\nouter               : 0 calls\n");
    t.out.clear();
    counts[0].shown = 1234;
    REQUIRE(t.view->redraw(counts, {24, 24}));
    CHECK(t.out == "\x1b[2A\x1b[Jouter               ...\ninner               ...\n");
    t.out.clear();
    CHECK(t.finish() == "\x1b[2A\x1b[Jinner               : 3 calls\nouter               : 2 calls\n");
}

TEST_CASE("trace view: what is drawn on a terminal is no higher than it, and taken away as a whole") {
    LiveText text;
    std::string out;
    text.draw(out, "1\n2\n3\n4\n5\n6\n7\n8\n9\n", {9, 80});
    CHECK(out == "1\n2\n3\n4\n5\n6\n7\n");
    out.clear();
    text.draw(out, "no end", {0, 0});
    CHECK(out == "\x1b[7A\x1b[Jno end\n");
    out.clear();
    text.clear(out);
    text.clear(out);
    CHECK(out == "\x1b[1A\x1b[J");
    CHECK(LiveText::table_rows({24, 80}) == 20);
    CHECK(LiveText::table_rows({1, 1}) == 4);
}

TEST_CASE("trace protobuf: the wire format") {
    // The examples of protobuf's own documentation: field 1 = 150; field 2 = "testing"; field 3 = a message with field 1 = 150.
    std::string out;
    Message(out).number(1, 150).text(2, "testing").message(3, [](Message &inner) { inner.number(1, 150); });
    CHECK(out == std::string_view("\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01"));
    out.clear();
    Message(out).number(1, 0).text(2, "").present(3, 0).signed_number(4, -2).fixed64(5, 0x0102030405060708);
    CHECK(out == std::string_view("\x18\x00\x20\x03\x29\x08\x07\x06\x05\x04\x03\x02\x01", 13));
    out.clear();
    Message(out).signed_number(1, INT64_MIN).number(2, UINT64_MAX);
    CHECK(out == "\x08" + std::string(9, '\xff') + "\x01\x10" + std::string(9, '\xff') + "\x01");
    out.clear();
    Message(out).text(1, "a\xff\x01");
    CHECK(out == "\x0a\x05"
                 "a\xef\xbf\xbd\x01");
}

TEST_CASE("trace view: protobuf, records behind their lengths") {
    Trace t(of(Format::protobuf));
    t.outer(1'000, 1, "hi");
    t.returns(3'000, 0, uint64_t(-2));
    const std::string all = t.finish();
    std::string_view rest = all;
    std::string kinds;
    while (!rest.empty()) {
        size_t length = 0, shift = 0;
        for (bool more = true; more && !rest.empty(); shift += 7) {
            length |= size_t{static_cast<unsigned char>(rest[0]) & 0x7fu} << shift;
            more = rest[0] & 0x80;
            rest.remove_prefix(1);
        }
        REQUIRE(length > 0);
        REQUIRE(length <= rest.size());
        kinds += static_cast<char>('0' + (static_cast<unsigned char>(rest[0]) >> 3));
        rest.remove_prefix(length);
    }
    CHECK(kinds == "1224"); // header, events, ledger
}

TEST_CASE("trace view: the ledger of each place") {
    std::vector<PlaceCounts> counts(3);
    counts[0] = {{3, 1, 0, 0}, 2};
    counts[2] = {{4000, 0, 5, 1}, 3994};
    CHECK(places_ledger({"outer", "silent", "inner"}, counts) ==
          "  function       fired       shown    filtered sampled out        lost\n"
          "  inner          4,000       3,994           0           5           1\n"
          "  outer              3           2           1           0           0\n");
    CHECK(places_ledger({"x"}, std::vector<PlaceCounts>(1)).empty());
}
