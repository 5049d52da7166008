// The capture file: what is written comes back, and nothing that is cut or forged gets far.
#include "programs/profile/capture.h"

#include "programs/profile/cpu_budget.h"
#include "programs/profile/deliver.h"
#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/profile/keep.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

/// A small run: two processes, kernel and user stacks, a JIT frame, an unreadable stack; with a reset in between if asked for.
std::string small_capture(bool with_reset = false, bool with_end = true, uint64_t claimed = 5) {
    StackTree tree;
    ModuleTable modules;
    CaptureWriter writer(-1);
    recording::Header header;
    header.run.version = "0.1.0";
    header.run.kernel = "6.18";
    header.run.arch = "x86_64";
    header.run.cpus = 2;
    header.run.start_wall_ns = 1'700'000'000'000'000'000;
    header.run.frequency = 99.5;
    header.run.command = {"rawbpf", "profile", "--record", "-"};
    header.start_ns = 1000;
    writer.begin(header);
    modules.intern({"/not/used", 0, 9, ModuleKind::file, ""});
    const uint32_t app = modules.intern({"/bin/app", 8, 77, ModuleKind::file, "00112233"});
    const uint32_t jit = modules.intern({"//anon", 0, 0, ModuleKind::anonymous, ""});
    auto make = [&](uint64_t t, uint64_t offset, const char *comm) {
        FrameLocation outer, leaf;
        outer.module = leaf.module = app;
        outer.address = 0x401000;
        outer.file_offset = 0x1000;
        outer.caller = true;
        leaf.address = 0x400000 + offset;
        leaf.file_offset = offset;
        InternedSample s;
        s.t_ns = t;
        s.pid = 10;
        s.tid = 11;
        s.cpu = 1;
        s.user = tree.intern_node(tree.intern_node(kNone, tree.intern_place(outer)), tree.intern_place(leaf));
        s.user_bytes = 16;
        s.kernel = tree.intern_node(kNone, tree.intern_place(kernel_place(0xffffffff81000010)));
        s.kernel_bytes = 8;
        std::strncpy(s.comm, comm, sizeof s.comm - 1);
        writer.sample(s, tree, modules);
        return s;
    };
    make(1500, 0x2000, "app");
    make(1400, 0x3000, "app"); // a little out of order
    auto name_kernel = [&] {
        Frame frame;
        frame.symbol = "schedule";
        frame.symbol_offset = 0x10;
        frame.module = "vmlinux";
        for (uint32_t i = 0; i < tree.places().size(); ++i)
            if (tree.places()[i].kernel) writer.name(i, frame);
    };
    if (with_reset) {
        name_kernel();
        writer.reset();
        tree.clear();
    }
    make(2000, 0x2000, "a\\b c");
    InternedSample s = make(2100, 0x2000, "");
    FrameLocation place;
    place.module = jit;
    place.address = 0x7f0000000010;
    place.pid = 12;
    s.pid = 12;
    s.ending = UNWIND_ENDED_ODD;
    s.user = tree.intern_node(kNone, tree.intern_place(place));
    s.kernel = kNone;
    s.kernel_bytes = -14;
    s.t_ns = 2200;
    writer.sample(s, tree, modules);
    name_kernel();
    Frame frame;
    frame.symbol = "js:loop";
    frame.module = "//anon";
    for (uint32_t i = 0; i < tree.places().size(); ++i)
        if (tree.places()[i].pid == 12) writer.name(i, frame);
    Outcome outcome;
    outcome.ledger.fired = 9;
    outcome.ledger.shown = claimed;
    outcome.ledger.filtered = 3;
    outcome.ledger.lost = {{"ring_full", 1}};
    outcome.cost.bpf_runs = 9;
    outcome.cost.bpf_ns = 12345;
    outcome.elapsed_ns = 5000;
    outcome.warnings = {"one warning"};
    if (with_end) writer.end(outcome);
    return writer.take();
}

struct Everything : CaptureReader::Visitor {
    std::vector<InternedSample> samples;
    std::vector<std::string> names;
    int parts = 0;
    Result<void> sample(const InternedSample &s) override {
        samples.push_back(s);
        return {};
    }
    void name(uint32_t, Frame &&frame) override { names.push_back(frame.symbol); }
    Result<void> part_ends() override {
        ++parts;
        return {};
    }
};

Result<Outcome> report(const std::string &capture, Sink &sink, Delivery delivery = Delivery::each) {
    ReportOptions options;
    options.delivery = delivery;
    return report_capture(bytes_of(capture), "test.rec", options, sink);
}

} // namespace

TEST_CASE("capture: what was written comes back") {
    for (bool with_reset : {false, true}) {
        const std::string capture = small_capture(with_reset);
        CaptureReader reader(bytes_of(capture), "test.rec");
        Everything seen;
        auto done = reader.read(seen);
        REQUIRE_MESSAGE(done, done.error().message());
        REQUIRE(seen.samples.size() == 5);
        CHECK(seen.samples[0].t_ns == 1500);
        CHECK(seen.samples[1].t_ns == 1400);
        CHECK(seen.samples[2].tid == 11);
        CHECK(std::string(seen.samples[2].comm) == "a\\b c");
        CHECK(seen.samples[3].ending == kNoEnding);
        CHECK(seen.samples[4].ending == UNWIND_ENDED_ODD);
        CHECK(seen.samples[4].kernel_bytes == -14);
        CHECK(seen.samples[4].kernel == kNone);
        CHECK(seen.parts == (with_reset ? 2 : 1));
        CHECK(reader.header().run.command.size() == 4);
        CHECK(reader.header().run.frequency == 99.5);
        CHECK(reader.outcome().ledger.adds_up());
        CHECK(reader.outcome().cost.bpf_ns == 12345);
        REQUIRE(reader.modules().all().size() == 2); // only what samples lie in
        CHECK(reader.modules()[0].build_id == "00112233");
        CHECK(reader.tree().places().size() == (with_reset ? 4 : 5));
    }
}

TEST_CASE("capture: a report names with the names in the file") {
    for (bool with_reset : {false, true}) {
        const std::string capture = small_capture(with_reset);
        Keep sink;
        auto outcome = report(capture, sink);
        REQUIRE_MESSAGE(outcome, outcome.error().message());
        REQUIRE(sink.each.size() == 5);
        CHECK(text(sink.each[0].kernel) == "schedule");
        CHECK(text(sink.each[2].kernel) == "schedule");
        CHECK(sink.each[0].t_ns == 500);
        CHECK(sink.each[0].wall_ns == 1'700'000'000'000'000'500);
        CHECK(text(sink.each[4].user) == "js:loop");
        REQUIRE(sink.each[0].user.size() == 2);
        CHECK(sink.each[0].user[0]->build_id == "00112233");
        CHECK(sink.each[0].user[0]->file_offset == 0x2000);
        CHECK(sink.each[0].user[0]->symbol.empty()); // /bin/app isn't here
        CHECK(sink.each[4].kernel_missed);
        CHECK(outcome->ledger.adds_up());
        REQUIRE(outcome->warnings.size() == 2);
        CHECK(outcome->warnings[0] == "one warning");
        CHECK(outcome->warnings[1].find("/bin/app") != std::string::npos);

        Keep counted;
        REQUIRE(report(capture, counted, Delivery::counted));
        uint64_t total = 0;
        for (const CountedSample &stack : counted.counted) total += stack.count;
        CHECK(total == 5);
        CHECK(counted.counted.size() == 5);
    }
}

TEST_CASE("capture: the event, and what samples stand for") {
    // Two samples of one stack, of the third part of all events; then as a clock's, of which the second ticked at a quarter.
    const auto capture = [](uint64_t period, uint32_t first, uint32_t second) {
        StackTree tree;
        ModuleTable modules;
        CaptureWriter writer(-1);
        recording::Header header;
        header.run.event = period ? "page-faults" : "cpu-clock";
        header.run.period = period;
        writer.begin(header);
        InternedSample s;
        s.t_ns = 1;
        s.weight = first;
        writer.sample(s, tree, modules);
        s.weight = second;
        writer.sample(s, tree, modules);
        Outcome outcome;
        outcome.ledger.fired = outcome.ledger.shown = 2;
        writer.end(outcome);
        return writer.take();
    };
    Keep events, clock, each;
    auto told = report(capture(3, 3, 3), events, Delivery::counted);
    REQUIRE(told);
    CHECK(told->run.event == "page-faults");
    CHECK(told->run.period == 3);
    CHECK(told->run.counts_events());
    REQUIRE(events.counted.size() == 1);
    CHECK(events.counted[0].count == 2);
    CHECK(events.counted[0].weight == 6);
    told = report(capture(0, 1, 4), clock, Delivery::counted);
    REQUIRE(told);
    CHECK(!told->run.counts_events());
    REQUIRE(clock.counted.size() == 1);
    CHECK(clock.counted[0].count == 2);
    CHECK(clock.counted[0].weight == 5);
    REQUIRE(report(capture(0, 4, 1), each));
    REQUIRE(each.each.size() == 2);
    CHECK(each.each[0].weight == 4);
    CHECK(each.each[1].weight == 1);
    CHECK(!report(capture(3, 3, 4), each));
    CHECK(!report(capture(0, 1, kMostWeight + 1), each));
    CHECK(!report(capture(0, 0, 1), each));
}

TEST_CASE("capture: cut at any byte what is whole is shown, and where it ends is said") {
    const std::string whole = small_capture(true);
    const size_t header = 8 + 2 + static_cast<unsigned char>(whole[9]); // magic, type and size, payload
    REQUIRE(header < 128 + 10);
    size_t before = 0;
    for (const Delivery delivery : {Delivery::each, Delivery::counted}) {
        before = 0;
        for (size_t size = 0; size < whole.size(); ++size) {
            CAPTURE(size);
            Keep sink;
            auto outcome = report(whole.substr(0, size), sink, delivery);
            if (size < header) { // nothing is known of it
                REQUIRE(!outcome);
                CHECK(outcome.error().kind == Errc::bad_input);
                CHECK(outcome.error().context.starts_with("test.rec: "));
                if (size >= 8) CHECK(outcome.error().context.find("offset 0x") != std::string::npos);
                CHECK(sink.calls == 0);
                continue;
            }
            REQUIRE_MESSAGE(outcome, outcome.error().message());
            size_t shown = sink.each.size();
            for (const CountedSample &stack : sink.counted) shown += stack.count;
            CHECK(shown == outcome->ledger.shown);
            CHECK(outcome->ledger.adds_up());
            CHECK(shown >= before);
            CHECK(shown <= before + 1);
            before = shown;
            CHECK(outcome->unread); // the status says so
            REQUIRE(!outcome->warnings.empty());
            CHECK(outcome->warnings[0].starts_with(format("test.rec: the capture ends early, at byte {}", size)));
        }
        CHECK(before == 5); // all of them were there before the end was
    }
    Keep sink;
    auto outcome = report(whole.substr(0, whole.size() - 3), sink);
    REQUIRE(outcome);
    CHECK(outcome->warnings[0].find(", 3 of ") != std::string::npos);
    REQUIRE(report(whole, sink));
    CHECK(!report(whole, sink)->unread);
}

TEST_CASE("capture: any byte changed gives an error or a report, never worse") {
    const std::string whole = small_capture(true);
    for (size_t at = 0; at < whole.size(); ++at) {
        for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            std::string forged = whole;
            forged[at] = static_cast<char>(value);
            Keep sink;
            (void)report(forged, sink, at % 2 ? Delivery::each : Delivery::counted);
        }
    }
}

TEST_CASE("capture: references forward, circles and depth are refused") {
    auto with = [](std::initializer_list<std::pair<int, std::string>> records) {
        std::string file("RAWBPFC\1", 8);
        file += std::string("\1\x08\0\0\0\0\0\0\0\0", 10); // an empty header
        for (const auto &[type, payload] : records) {
            file.push_back(static_cast<char>(type));
            file.push_back(static_cast<char>(payload.size()));
            file += payload;
        }
        return file;
    };
    const std::string place("\0\0\0\0\0", 5);
    auto error = [&](const std::string &file) {
        Keep sink;
        auto outcome = report(file, sink);
        REQUIRE(!outcome);
        return outcome.error().context;
    };
    Keep sink;
    CHECK(report(with({{3, place}}), sink)); // it ends early, that is all
    CHECK(error(with({{3, std::string("\0\1\0\0\0", 5)}})).find("module 1 of 1") != std::string::npos);
    CHECK(error(with({{3, place}, {4, std::string("\1\0", 2)}})).find("caller 1 of 1") != std::string::npos);
    CHECK(error(with({{4, std::string("\0\0", 2)}})).find("place 0 of 0") != std::string::npos);
    CHECK(error(with({{13, ""}})).find("unknown type 13") != std::string::npos);
    CHECK(error(with({{11, std::string(1, '\0')}})).find("a set of 0 labels") != std::string::npos);
    CHECK(error(with({{11, "\xff\xff\x7f"}})).find("a set of") != std::string::npos);
    CHECK(error(with({{12, "\1"}})).find("labels 1 of 1") != std::string::npos);
    CHECK(error(with({{3, std::string("\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 12)}})).find("64 bits") !=
          std::string::npos);
    std::string deep = with({{3, place}});
    for (uint32_t i = 0; i <= 1024; ++i) { // each the caller of the next
        std::string p;
        for (uint32_t v = i;; v >>= 7) {
            p.push_back(static_cast<char>(v >= 0x80 ? (v & 0x7f) | 0x80 : v));
            if (v < 0x80) break;
        }
        p.push_back('\0');
        deep += std::string("\4") + static_cast<char>(p.size()) + p;
    }
    CHECK(error(deep).find("more than 1024 frames") != std::string::npos);
    CHECK(error(small_capture(false, true, 6)).find("holds 5") != std::string::npos);
    const auto endless = report(small_capture(false, false), sink);
    REQUIRE(endless);
    CHECK(endless->warnings[0].find(". Also missing is") != std::string::npos); // no record is broken
    CHECK(endless->ledger.shown == 5);
    CHECK(error("RAWBPFC\2 a later version").find("later version") != std::string::npos);
}

TEST_CASE("capture: labels come back, over a reset and in whatever order sets were met") {
    StackTree tree;
    ModuleTable modules;
    processes::LabelSets sets;
    CaptureWriter writer(-1);
    writer.begin({});
    InternedSample s;
    s.t_ns = 1;
    const auto write = [&](uint32_t labels) {
        s.labels = labels;
        writer.sample(s, tree, modules, sets);
    };
    const uint32_t a = sets.intern({{"route", "/a"}}), b = sets.intern({{"route", "/b"}, {"user", ""}});
    for (const uint32_t labels : {0u, b, b, a, 0u, b}) write(labels);
    writer.reset();
    sets.clear();
    write(sets.intern({{"route", "/c"}}));
    write(0);
    Outcome outcome;
    outcome.ledger.fired = outcome.ledger.shown = 8;
    writer.end(outcome);
    const std::string capture = writer.take();
    Keep each;
    REQUIRE(report(capture, each, Delivery::each));
    std::vector<std::string> seen;
    for (const NamedSample &sample : each.each) {
        seen.emplace_back();
        if (sample.labels)
            for (const auto &[key, value] : *sample.labels) seen.back() += key + "=" + value + ";";
    }
    CHECK(seen == std::vector<std::string>{"", "route=/b;user=;", "route=/b;user=;", "route=/a;", "", "route=/b;user=;",
                                           "route=/c;", ""});
    Keep counted;
    REQUIRE(report(capture, counted, Delivery::counted));
    uint64_t labelled = 0;
    for (const CountedSample &stack : counted.counted)
        if (stack.sample.labels && stack.sample.labels->front().second == "/b") labelled += stack.count;
    CHECK(labelled == 3);
}
