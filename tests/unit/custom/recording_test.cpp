// Recorded custom traces: what the view says of a recording is what it says of the traces themselves; nothing that is cut or
// forged gets far.
#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "programs/custom/recorder.h"
#include "programs/custom/report.h"
#include "programs/custom/view.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "tests/support/cut_recording.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::custom;

extern "C" {
// Two functions of this program: traces are of this process.
__attribute__((noinline, used)) int custom_recording_leaf(int n) {
    asm volatile("" ::: "memory");
    return n + 1;
}
__attribute__((noinline, used)) int custom_recording_caller(int n) {
    const int out = custom_recording_leaf(n);
    asm volatile("" ::: "memory");
    return out * 3;
}
}

namespace {

constexpr uint64_t kStart = 1'000'000'000;
constexpr uint64_t kTraces = 60;
constexpr uint32_t kNobody = 4'194'305; // no process has it: the largest is 4194304

// Where its first instruction is: a pointer to Thumb code says so in its lowest bit.
uint64_t address_of(int (*function)(int)) {
#ifdef __thumb__
    return reinterpret_cast<uintptr_t>(function) & ~uintptr_t{1};
#else
    return reinterpret_cast<uintptr_t>(function);
#endif
}

// Traces of all origins, whole ones and others: without their caller, of nobody, unreadable, cut, of a context that isn't
// checked.
template <class See> void each_trace(See &&see) {
    const uint64_t leaf = address_of(custom_recording_leaf), caller = address_of(custom_recording_caller) + 4;
    const uint64_t short_one[] = {leaf}, whole[] = {leaf, caller}, inside[] = {leaf + 1, caller}, junk[] = {0x10, 0x20},
                   kernel[] = {0xffffffff81000010, 0xffffffff81000020};
    std::vector<uint64_t> deep(kDeepest, caller);
    for (uint64_t i = 0; i < kTraces; ++i) {
        CustomTrace trace{};
        Record &head = trace.head;
        head.t_ns = kStart + 1000 * i;
        head.pid = i % 7 == 6 ? kNobody : static_cast<uint32_t>(getpid());
        head.tid = head.pid + static_cast<uint32_t>(i % 3);
        head.cpu = i % 2;
        std::strcpy(head.comm, i % 5 ? "tester" : "x\\y");
        head.origin = i % 4 == 0 ? Origin::sampling : i % 4 == 1 ? Origin::off_cpu : Origin::custom;
        head.context = head.origin == Origin::sampling ? 0 : i % 8 == 3 ? UINT64_MAX - i : 5 + i; // steps of any size
        head.caller = head.origin == Origin::custom ? caller : caller + 1;
        trace.user = i % 6 == 0   ? std::span<const uint64_t>(short_one)
                     : i % 6 == 1 ? std::span<const uint64_t>(whole)
                     : i % 6 == 2 ? std::span<const uint64_t>(inside)
                     : i % 6 == 3 ? std::span<const uint64_t>(deep)
                                  : std::span<const uint64_t>(short_one);
        if (i % 7 == 6) trace.user = junk;
        if (i % 10 == 9) {
            trace.user = {};
            head.user_bytes = -14;
        }
        if (head.origin == Origin::sampling) trace.kernel = kernel;
        if (i % 11 == 10) head.flags = kPerCpu | kTruncated;
        see(trace);
    }
}

constexpr Settings kAll{true, true, false, UnwindBy::fp};

RunInfo run_of_test() {
    RunInfo run;
    run.command = {"rawbpf", "custom"};
    run.start_wall_ns = 1'736'936'745'000'000'000;
    return run;
}

Ledger ledger_of_test() {
    Ledger out;
    out.fired = kTraces + 2;
    out.shown = kTraces;
    out.lost = {{"ring_full", 2}};
    out.waits = {{"end_not_seen", 1}};
    return out;
}

std::string recorded() {
    Places places(kDeepest);
    Recorder recorder(-1, kAll, places);
    REQUIRE(recorder.start(run_of_test(), kStart));
    each_trace([&](const CustomTrace &trace) { recorder.trace(places.locate(trace)); });
    recording::End end;
    end.ledger = ledger_of_test();
    REQUIRE(recorder.finish(end));
    CHECK(recorder.tally().shown() == kTraces);
    return recorder.take();
}

// The same of a program that isn't there: its symbols aren't read over and over again.
std::string recorded_elsewhere() {
    std::string out = recorded();
    const std::string here = "/unit-tests", there = "/elsewhere!";
    for (size_t at = 0; (at = out.find(here, at)) != std::string::npos;) out.replace(at, there.size(), there);
    return out;
}

std::string live(ViewOptions how) {
    std::string out;
    render::Writer writer(out);
    Names names;
    how.off_cpu = how.origins = true;
    how.guarded = false;
    View view(how, names, run_of_test(), kStart, writer);
    REQUIRE(view.start());
    each_trace([&](const CustomTrace &trace) { view.trace(names.locate(trace)); });
    view.drain();
    Ledger ledger = ledger_of_test();
    ledger.degraded = view.tally().degraded();
    ledger.stack_ends = view.tally().stack_ends();
    ledger.cost = render::RunCost();
    ledger.cost->advice = names.advice(kAll.unwind);
    REQUIRE(view.finish(ledger));
    return out;
}

Result<std::string> shown(const std::string &recording, const ViewOptions &how, ReportEnd *end = nullptr) {
    std::string out;
    render::Writer writer(out);
    const std::unique_ptr<custom::Report> report = TRY(custom::Report::open(bytes_of(recording), "test.rbpf"));
    ReportEnd came = TRY(report->show(how, {}, writer));
    if (end) *end = std::move(came);
    return out;
}

// The first lines that differ.
std::string difference(std::string_view one, std::string_view other) {
    while (!one.empty() || !other.empty()) {
        const std::string_view a = one.substr(0, one.find('\n')), b = other.substr(0, other.find('\n'));
        if (a != b) return format("live:   {}\nreport: {}", a, b);
        one.remove_prefix(std::min(one.size(), a.size() + 1));
        other.remove_prefix(std::min(other.size(), b.size() + 1));
    }
    return {};
}

ViewOptions in_format(std::string_view name, ViewOptions::Weight weight = ViewOptions::Weight::count) {
    ViewOptions out;
    out.format = rendered(name);
    out.json = name == "json";
    out.weight = weight;
    return out;
}

} // namespace

TEST_CASE("custom: a recording is shown as the traces themselves are, in each format") {
    const std::string recording = recorded();
    for (const char *name : {"text", "json", "folded", "svg", "top", "perf-script", "speedscope", "firefox"}) {
        const bool is_json = std::string_view(name) == "json" || (rendered(name) && render::is_json(*rendered(name)));
        if (is_json && !render::writes_json()) continue;
        CAPTURE(name);
        const auto report = shown(recording, in_format(name));
        REQUIRE_MESSAGE(report, report.error().message());
        CHECK(difference(live(in_format(name)), *report) == "");
    }
    for (const auto weight : {ViewOptions::Weight::context, ViewOptions::Weight::off_cpu})
        CHECK(difference(live(in_format("folded", weight)), shown(recording, in_format("folded", weight)).value()) == "");
    CHECK(recording.size() < 40 * kTraces); // all that comes once included, a stack of 127 frames among it
}

TEST_CASE("custom: a recording finds the caller where a function begins, and only there") {
    std::string text = shown(recorded(), {}).value();
    const std::string missing = "  #0: custom_recording_leaf [", found = "  #1: custom_recording_caller [";
    size_t leaves = 0, with = 0;
    for (size_t at = 0; (at = text.find(missing, at)) != std::string::npos; ++at) {
        const size_t line = text.find('\n', at) + 1;
        ++leaves;
        with += text.compare(line, found.size(), found) == 0;
    }
    CHECK(leaves > 20);
    CHECK(leaves == with);
}

TEST_CASE("custom: the end of a recording has what the ledger has") {
    ReportEnd end;
    REQUIRE(shown(recorded(), {}, &end));
    CHECK(!end.unread);
    CHECK(end.ledger.fired == kTraces + 2);
    CHECK(end.ledger.adds_up());
    CHECK(end.ledger.waits == recording::Counted{{"end_not_seen", 1}});
    std::vector<std::string> reasons;
    for (const auto &[reason, count] : end.ledger.degraded) reasons.push_back(reason);
    CHECK(reasons ==
          std::vector<std::string>{"user_stack_unreadable", "stack_truncated", "context_unchecked", "process_unknown"});
    CHECK(end.totals == "Traces - Total: 60, Custom: 30, Sampling: 15, Off-CPU: 15");
}

TEST_CASE("custom: a recording cut at any byte is shown up to there") {
    const std::string whole = recorded_elsewhere();
    test::check_cut_anywhere<ReportEnd>(whole, "traces", kTraces, [](const std::string &text, size_t size, ReportEnd &end) {
        return shown(text, in_format(size % 2 ? "text" : "folded"), &end);
    });
}

TEST_CASE("custom: any byte of a recording changed gives an error or a report, never worse") {
    const std::string whole = recorded_elsewhere();
    for (size_t at = 0; at < whole.size(); at += test::emulated() ? 21 : 3)
        for (unsigned char value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            std::string forged = whole;
            forged[at] = static_cast<char>(value);
            (void)shown(forged, in_format(at % 2 ? "text" : "folded"));
        }
}

TEST_CASE("custom: records that don't belong into a recording are refused") {
    const auto said = [](auto &&write) {
        recording::Writer writer(-1);
        writer.begin({{}, 0, recording::Tool::custom});
        write(writer);
        writer.end({});
        const auto text = shown(writer.take(), {});
        return text ? std::string() : text.error().message();
    };
    const auto settings = [](recording::Writer &to) { TraceWriter(to).settings({}); };
    CHECK(said([](recording::Writer &) {}).empty());
    CHECK(said(settings).empty());
    CHECK(said([&](recording::Writer &to) { settings(to), settings(to); }).find("a second time") != std::string::npos);
    CHECK(said([](recording::Writer &to) {
              TraceWriter(to).waits({{"x", 1}});
          }).find("before the settings") != std::string::npos);
    CHECK(said([](recording::Writer &to) { to.chunk(24, ""); }).find("unknown type 24") != std::string::npos); // rawbpf trace's
    CHECK(said([](recording::Writer &to) { to.chunk(35, ""); }).find("unknown type 35") != std::string::npos);
    recording::Writer other(-1);
    other.begin({});
    other.end({});
    const auto text = shown(other.take(), {});
    REQUIRE(!text);
    CHECK(text.error().message().find("recorded by rawbpf profile, not by rawbpf custom") != std::string::npos);
}
