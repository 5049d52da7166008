// Other tools' formats: golden small cases, and hostile names. Whole files are read by those tools themselves in tests/formats.
#include <algorithm>
#include <map>

#include "programs/render/gzip.h"
#include "programs/render/json_line.h"
#include "programs/render/live_top.h"
#include "programs/render/thread_stacks.h"
#include "programs/render/tool_formats.h"
#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

namespace {

std::string hostile() { return "a \"b\";c\\\n\x1b[31m\xff(x)"; }

using Counted = std::vector<std::pair<NamedSample, uint64_t>>;

std::string difference(Format format, const Counted &before, const Counted &after, RenderOptions options = {}) {
    options.difference = true;
    std::string text;
    Writer out(text);
    auto renderer = make_any_renderer(format, options, out);
    if (!renderer) return "error: " + renderer.error().message();
    for (const Counted *one : {&before, &after}) {
        (*renderer)->begin(run_info());
        for (auto &[sample, count] : *one) (*renderer)->sample(sample, count);
        (*renderer)->end({});
    }
    return text;
}

} // namespace

TEST_CASE("render: perf-script is what perf script prints") {
    NamedSample one =
        stack("node", {user_frame("main"), user_frame("operator new(unsigned long)", "/lib/libc++.so", 0x7f3a5c0e2b10)},
              {kernel_frame("do_syscall_64")});
    one.wall_ns = 1761659235000424689;
    NamedSample odd = stack("Web Content", {user_frame("", "/tmp/a (deleted)"), user_frame("", "")}, {kernel_frame("")});
    NamedSample missed = stack("c", {}, {});
    missed.user_missed = true;
    CHECK(rendered(Format::perf_script, {{one, 1}, {odd, 2}, {missed, 1}}) ==
          "node     2134 [004] 1761659235.000424:   10101010 cpu-clock: \n"
          "\tffffffff8112a0b4 do_syscall_64+0x64 ([kernel.kallsyms])\n"
          "\t    7f3a5c0e2b10 operator new(unsigned long)+0x16 (/lib/libc++.so)\n"
          "\t          401136 main+0x16 (/usr/bin/split)\n"
          "\n"
          "Web\\x20Content     2134 [004] 1761659235.300424:   20202020 cpu-clock: \n"
          "\tffffffff8112a0b4 [unknown] ([unknown])\n"
          "\t          401136 [unknown] ([unknown])\n"
          "\t          401136 [unknown] (/tmp/a\\x20\\x28deleted\\x29)\n"
          "\n"
          "c     2134 [004] 1761659235.300424:   10101010 cpu-clock: \n"
          "\n");
    NamedSample bad = stack(hostile(), {user_frame(hostile(), hostile())});
    CHECK(rendered(Format::perf_script, {{bad, 1}}) ==
          "a\\x20\"b\"\\x3bc\\x5c\\x0a\\x1b[31m\\xff(x)     2134 [004] 1761659235.300424:   10101010 cpu-clock: \n"
          "\t          401136 a \"b\":c\\\\x0a\\x1b[31m\\xff(x)+0x16 (a\\x20\"b\"\\x3bc\\x5c\\x0a\\x1b[31m\\xff\\x28x\\x29)\n"
          "\n");
}

TEST_CASE("render: events that aren't a clock's are counted, by their name") {
    RunInfo run = run_info();
    run.frequency = 0;
    run.event = "page-faults";
    run.period = 10;
    NamedSample s = stack("node", {user_frame("main")});
    s.weight = 10;
    const auto shown = [&](Format format, uint64_t weight = 10) { return rendered(format, {{s, weight}}, {}, {}, run); };
    CHECK(shown(Format::perf_script).starts_with("node     2134 [004] 1761659235.300424:         10 page-faults: \n"));
    CHECK(shown(Format::folded, 30) == "node;main 30\n");
    CHECK(shown(Format::top, 30).find(" EVENTS           HOTTEST STACKS\n     30") != std::string::npos);
    const std::string svg = shown(Format::svg, 30);
    CHECK(svg.find("page-faults flame graph") != std::string::npos);
    CHECK(svg.find("30 page-faults, one in 10 sampled") != std::string::npos);
    CHECK(svg.find("sample<") == std::string::npos);
    if (writes_json()) {
        CHECK(shown(Format::json).find("\"event\":\"page-faults\",\"period\":10}") != std::string::npos);
        CHECK(shown(Format::json).find("\"cpu\":4,\"weight\":10,") != std::string::npos);
        CHECK(shown(Format::speedscope, 30).find("\"unit\":\"none\",\"startValue\":0,\"endValue\":30") != std::string::npos);
        const std::string firefox = shown(Format::firefox, 20); // two samples
        CHECK(firefox.find("\"data\":[[0,1.500000,0],[0,1.500000,0]]") != std::string::npos);
    }
    run.event = "a b\n:";
    CHECK(shown(Format::perf_script).find("10 a\\x20b\\x0a:: \n") != std::string::npos);
    CHECK(shown(Format::svg).find("a b\n:") == std::string::npos);
}

TEST_CASE("render: threads apart") {
    NamedSample one = stack("a b", {user_frame("main")}), two = one;
    two.tid = 2135;
    RenderOptions options;
    options.threads = true;
    CHECK(rendered(Format::folded, {{one, 1}, {two, 2}}, options) == "a\\x20b-2133/2134;main 1\na\\x20b-2133/2135;main 2\n");
    CHECK(rendered(Format::folded, {{one, 1}, {two, 2}}) == "a\\x20b;main 3\n");
    const std::string top = rendered(Format::top, {{one, 1}, {two, 2}}, options);
    CHECK(top.find("  TOTAL  THREAD\n 66.7 %  a b-2133/2135\n 33.3 %  a b-2133/2134\n") != std::string::npos);
    CHECK(top.find("thread a b-2133/2135\n") != std::string::npos);
    CHECK(rendered(Format::svg, {{one, 1}, {two, 2}}, options).find("a b-2133/2135") != std::string::npos);
}

TEST_CASE("render: inlined functions in other tools' formats") {
    NamedSample s =
        stack("draw", {source_frame("area", "/src/shapes.cpp", 40, false), source_frame("square", "/src/shapes.h", 12, true)});
    CHECK(rendered(Format::perf_script, {{s, 1}})
              .ends_with("\t          401136 square (inlined)\n"
                         "\t          401136 area+0x16 (/usr/bin/split)\n\n"));
    if (writes_json()) CHECK(rendered(Format::speedscope, {{s, 1}}).find("{\"name\":\"square_[i]\"") != std::string::npos);
    // Two locations of one address; the same function on two lines is two as well.
    for (const bool addresses : {false, true}) {
        ThreadStacks stacks({.addresses = addresses});
        stacks.add(s, 1);
        stacks.add(stack("draw",
                         {source_frame("area", "/src/shapes.cpp", 41, false), source_frame("square", "/src/shapes.h", 12, true)}),
                   1);
        CHECK(stacks.frames().size() == (addresses ? 3 : 2));
    }
}

TEST_CASE("render: speedscope has a profile a thread, in the order of time") {
    if (!writes_json()) SKIP("this build writes no JSON");
    NamedSample a = stack("split", {user_frame("main"), user_frame("hot_a")}),
                b = stack("split", {user_frame("main"), user_frame("hot_b")});
    NamedSample late = a, other = stack("", {}, {kernel_frame("schedule")});
    b.t_ns = 2500000;
    late.t_ns = 3500000;
    other.tid = 2135;
    // As the ring hands them over: nearly in order.
    CHECK(
        rendered(Format::speedscope, {{b, 1}, {a, 2}, {late, 1}, {other, 1}}) ==
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"rawbpf 0.1.0\","
        "\"name\":\"rawbpf profile -f svg -- './my split' 3\",\"shared\":{\"frames\":["
        "{\"name\":\"main\",\"file\":\"/usr/bin/split\"},{\"name\":\"hot_b\",\"file\":\"/usr/bin/split\"},"
        "{\"name\":\"hot_a\",\"file\":\"/usr/bin/split\"},{\"name\":\"schedule_[k]\",\"file\":\"vmlinux\"}]},\"profiles\":["
        "{\"type\":\"sampled\",\"name\":\"split 2133/2134\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":40404040,"
        "\"samples\":[[0,2],[0,1],[0,2]],\"weights\":[20202020,10101010,10101010]},"
        "{\"type\":\"sampled\",\"name\":\"[unknown] 2133/2135\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":10101010,"
        "\"samples\":[[3]],\"weights\":[10101010]}]}\n");
    const std::string none = rendered(Format::speedscope, {}, {.title = "t\"\x01\xff"});
    CHECK(none.find("\"name\":\"t\\\"\\u0001\\ufffd\"") != std::string::npos);
    CHECK(none.ends_with("\"profiles\":[]}\n"));
    const std::string bad = rendered(Format::speedscope, {{stack(hostile(), {user_frame(hostile(), hostile())}), 1}});
    CHECK(bad.find("a \\\"b\\\";c\\\\\\n\\u001b[31m\\ufffd(x) 2133/2134") != std::string::npos);
    CHECK(std::count(bad.begin(), bad.end(), '\n') == 1);
}

TEST_CASE("render: more samples than are kept one by one are counted") {
    ThreadStacks stacks({.most_samples = 4});
    NamedSample a = stack("split", {user_frame("main"), user_frame("hot_a")}), b = stack("split", {user_frame("main")});
    for (uint64_t i = 0; i < 5; ++i) {
        NamedSample &s = i % 2 ? b : a;
        s.t_ns = 1000 * (5 - i);
        CHECK(!stacks.counted());
        stacks.add(s, 1);
    }
    CHECK(stacks.counted());
    stacks.add(a, 10);
    stacks.finish();
    REQUIRE(stacks.threads().size() == 1);
    const ThreadStacks::Thread &thread = stacks.threads()[0];
    REQUIRE(thread.runs.size() == 2);
    CHECK(thread.runs[0].count == 13);
    CHECK(thread.runs[0].t_ns == 1000);
    CHECK(thread.runs[1].count == 2);
    CHECK(thread.first_ns == 1000);
    CHECK(thread.last_ns == 5000);
    CHECK(stacks.frames().size() == 2);
    CHECK(stacks.nodes().size() == 2);
}

TEST_CASE("render: equal stacks of different contexts are kept apart, and weights added") {
    ThreadStacks stacks({.counted = true});
    const NamedSample one = stack("server", {user_frame("main"), user_frame("handle")});
    stacks.add(one, 1, {"custom", 7, 0});
    stacks.add(one, 1, {"custom", 0, 0});
    stacks.add(one, 1, {"custom", 7, 0});
    stacks.add(one, 1, {"off_cpu", {}, 100});
    stacks.add(one, 1, {"off_cpu", {}, 20});
    stacks.finish();
    REQUIRE(stacks.threads().size() == 1);
    uint64_t seen = 0;
    for (const ThreadStacks::Run &run : stacks.threads()[0].runs) {
        const TraceOrigin &origin = stacks.origins()[run.origin];
        if (origin.event == "off_cpu") {
            CHECK(run.count == 2);
            CHECK(run.weight == 120);
            CHECK_FALSE(origin.context.has_value());
        } else {
            REQUIRE(origin.context.has_value());
            CHECK(run.count == (*origin.context == 7 ? 2 : 1));
        }
        ++seen;
    }
    CHECK(seen == 3);
    const TraceOrigin origin{"custom", 42, 0};
    std::string text;
    Writer out(text);
    auto perf = make_any_renderer(Format::perf_script, {.traces = {.current = &origin, .weight = {}}}, out).value();
    perf->begin({});
    perf->sample(one);
    perf->end({});
    (void)out.flush();
    CHECK_MESSAGE(text.find(":          1 custom: \n") != std::string::npos, text);
}

TEST_CASE("render: labels are the outermost frames, or tell runs apart") {
    NamedSample one = stack("server", {user_frame("main")});
    NamedSample labelled = one;
    labelled.labels = std::make_shared<Labels>(Labels{{"route", "/a"}});
    ThreadStacks as_frames({.counted = true}), apart({.counted = true, .labels = true});
    for (ThreadStacks *stacks : {&as_frames, &apart}) {
        for (const NamedSample &sample : {one, labelled, labelled}) stacks->add(sample, 1);
        stacks->finish();
        REQUIRE(stacks->threads().size() == 1);
        REQUIRE(stacks->threads()[0].runs.size() == 2);
    }
    CHECK(as_frames.nodes().size() == 3);
    CHECK(apart.nodes().size() == 1);
    for (const ThreadStacks::Run &run : apart.threads()[0].runs) CHECK(run.count == (run.labels == 0 ? 1 : 2));
    REQUIRE(apart.labels().size() == 2);
    CHECK(*apart.labels()[1] == *labelled.labels);
}

TEST_CASE("render: frames are one by name, or by address") {
    for (const bool addresses : {false, true}) {
        ThreadStacks stacks({.addresses = addresses});
        stacks.add(stack("c", {user_frame("f", "/bin/c", 0x1000), user_frame("f", "/bin/c", 0x2000)}), 1);
        stacks.add(stack("c", {user_frame("f", "/bin/c", 0x1000), user_frame("f", "/bin/d", 0x1000)}), 1);
        stacks.add(stack("c", {user_frame("", "", 0x10), user_frame("", "", 0x20)}), 1);
        CHECK(stacks.frames().size() == (addresses ? 5 : 4));
        NamedSample none = stack("c", {}, {});
        stacks.add(none, 1);
        none.user_missed = none.kernel_missed = true;
        stacks.add(none, 1);
        CHECK(stacks.frames().size() == (addresses ? 8 : 7));
        CHECK(stacks.frames().back()->symbol == "[Missed Kernel Stack]");
    }
}

TEST_CASE("render: pprof is a gzip file, and the same profile always the same one") {
    const std::vector<std::pair<NamedSample, uint64_t>> samples{
        {stack("split", {user_frame("main"), user_frame("hot_a")}, {kernel_frame("sys_read")}), 3},
        {stack(hostile(), {user_frame(hostile(), hostile()), user_frame("", "")}), 1}};
    const std::string one = rendered(Format::pprof, samples), two = rendered(Format::pprof, samples);
    CHECK(one == two);
    if (compresses()) CHECK(one.starts_with(std::string("\x1f\x8b\x08\0\0\0\0\0", 8)));
    CHECK(!rendered(Format::pprof, {}).empty());
}

TEST_CASE("render: which formats are whose") {
    CHECK(format_named("perf-script") == Format::perf_script);
    CHECK(kFormatChoices.starts_with("table folded folded-ext json svg top pprof perf-script speedscope firefox"));
    for (size_t i = 0; i < std::size(kFormats); ++i) {
        const auto format = static_cast<Format>(i);
        CHECK(format_named(kFormats[i].name) == format);
        if (is_json(format) && !writes_json()) continue;
        std::string text;
        Writer out(text);
        CHECK(make_any_renderer(format, {}, out).has_value());
        CHECK(make_renderer(format, {}, out).has_value() == !for_other_tools(format));
        CHECK(!(streams(format) && aggregates(format)));
    }
}

TEST_CASE("render: the difference of two profiles, folded") {
    NamedSample a = stack("split", {user_frame("main"), user_frame("hot_a")}),
                b = stack("split", {user_frame("main"), user_frame("hot_b")});
    NamedSample k = stack("split", {user_frame("main")}, {kernel_frame("sys_read")});
    CHECK(difference(Format::folded, {{a, 30}, {b, 10}}, {{b, 25}, {k, 5}, {b, 1}}) == "split;main;hot_a 30 0\n"
                                                                                       "split;main;hot_b 10 26\n"
                                                                                       "split;main;sys_read_[k] 0 5\n");
    CHECK(difference(Format::folded, {{stack("c;", {user_frame("a;b")}), 1}}, {{stack("c;", {user_frame("a:b")}), 2}}) ==
          "c\\x3b;a:b 1 2\n");
    CHECK(difference(Format::folded, {}, {}) == "");
    CHECK(difference(Format::top, {}, {}) == "error: differences are shown by folded and svg");
}

TEST_CASE("render: the difference of two profiles, drawn") {
    NamedSample up = stack("c", {user_frame("main"), user_frame("up")}),
                down = stack("c", {user_frame("main"), user_frame("down")}),
                same = stack("c", {user_frame("main"), user_frame("same")}),
                gone = stack("c", {user_frame("main"), user_frame("gone")});
    const std::string svg = difference(Format::svg, {{up, 100}, {down, 400}, {same, 400}, {gone, 100}},
                                       {{up, 800}, {down, 400}, {same, 804}}); // of 1,000 and of 2,004
    const auto frame = [&](const std::string &name) {
        const size_t title = svg.find("<title>" + name + "\n");
        if (title == std::string::npos) return std::string("none");
        const size_t from = svg.rfind("<g class=", title);
        return svg.substr(from, svg.find("</title>", title) - from);
    };
    CHECK(frame("up").starts_with("<g class=\"f g5\""));
    CHECK(frame("up").ends_with("800 samples, 39.92 %\nbefore 100 samples, 10.00 %: +29.92 %"));
    CHECK(frame("down").starts_with("<g class=\"f s4\""));
    CHECK(frame("same").starts_with("<g class=\"f z\"")); // 40.00 and 40.12 %
    CHECK(frame("main").starts_with("<g class=\"f z\""));
    CHECK(frame("all").starts_with("<g class=\"f z\""));
    CHECK(frame("gone") == "none");
    CHECK(svg.find("before 1,000 samples, 10.0 % of them in stacks that are gone · now 2,004<") != std::string::npos);
    CHECK(svg.find("Differential flame graph: ") != std::string::npos);
    // Chance explains three samples more of a hundred.
    const std::string noise = difference(Format::svg, {{up, 50}, {down, 50}}, {{up, 53}, {down, 47}});
    CHECK(noise.find("class=\"f g") == std::string::npos);
    CHECK(noise.find("class=\"f s") == std::string::npos);
    for (const Counted &one : {Counted{}, Counted{{stack(hostile(), {user_frame(hostile())}), 1}}}) {
        CHECK(difference(Format::svg, {}, one).ends_with("</svg>\n"));
        CHECK(difference(Format::svg, one, {}).ends_with("</svg>\n"));
    }
}

TEST_CASE("render: an icicle has its root at the top") {
    const NamedSample a = stack("c", {user_frame("main"), user_frame("leaf")});
    const auto y_of = [](const std::string &svg, const std::string &name) {
        const size_t at = svg.find("<title>" + name + "\n");
        return at == std::string::npos ? -1 : std::atoi(svg.c_str() + svg.find(" y=\"", at) + 4);
    };
    const std::string flame = rendered(Format::svg, {{a, 1}}), icicle = rendered(Format::svg, {{a, 1}}, {.icicle = true});
    CHECK(y_of(flame, "all") - y_of(flame, "leaf") == 3 * 18);
    CHECK(y_of(icicle, "leaf") - y_of(icicle, "all") == 3 * 18);
    CHECK(y_of(icicle, "all") == y_of(flame, "leaf"));
    CHECK(icicle.find("version=\"1.1\" class=\"icicle\" width=") != std::string::npos);
    CHECK(flame.find("class=\"icicle\"") == std::string::npos);
}

TEST_CASE("render: firefox has tables for each thread") {
    if (!writes_json()) SKIP("this build writes no JSON");
    NamedSample a = stack("split", {user_frame("main"), user_frame("hot_a")}),
                other = stack("io \"1\"", {}, {kernel_frame("schedule")});
    NamedSample b = stack("split", {user_frame("main"), user_frame("", "/tmp/x (1)")});
    b.t_ns = 500000;
    other.tid = 2135;
    const std::string text = rendered(Format::firefox, {{a, 2}, {b, 1}, {other, 1}});
    const size_t threads = text.find("\"threads\":");
    CHECK(text.find(R"x("version":24,"startTime":1761659235300.424689,"interval":10.101010,)x") < threads);
    const std::string samples =
        R"x(,"unregisterTime":null,"markers":{"schema":{"name":0,"startTime":1,"endTime":2,"phase":3,)x"
        R"x("category":4,"data":5},"data":[]},"samples":{"schema":{"stack":0,"time":1,"responsiveness":2},"data":)x";
    const std::string frames = R"x("frameTable":{"schema":{"location":0,"relevantForJS":1,"innerWindowID":2,"implementation":3,)x"
                               R"x("optimizations":4,"line":5,"column":6,"category":7,"subcategory":8},"data":)x";
    const std::string wanted =
        R"x("threads":[{"name":"split","processType":"default","pid":2133,"tid":2134,"registerTime":0.500000)x" + samples +
        R"x([[1,0.500000,0],[2,1.500000,0],[2,1.500000,0]]},"stackTable":{"schema":{"prefix":0,"frame":1},"data":)x"
        R"x([[null,0],[0,1],[0,2]]},)x" +
        frames +
        R"x([[0,false,0,null,null,null,null,0,0],[1,false,0,null,null,null,null,0,0],[2,false,0,null,null,null,null,0,0]]},)x"
        R"x("stringTable":["main (in split)","[x (1)]","hot_a (in split)"]},)x"
        R"x({"name":"io \"1\"","processType":"default","pid":2133,"tid":2135,"registerTime":1.500000)x" +
        samples + R"x([[0,1.500000,0]]},"stackTable":{"schema":{"prefix":0,"frame":1},"data":[[null,0]]},)x" + frames +
        R"x([[0,false,0,null,null,null,null,1,0]]},"stringTable":["schedule_[k] (in vmlinux)"]}],"processes":[],"pausedRanges":[]})x"
        "\n";
    CHECK(text.substr(threads) == wanted);
    const std::string bad = rendered(Format::firefox, {{stack(hostile(), {user_frame(hostile(), hostile())}), 1}});
    CHECK(bad.find(R"x(a \"b\";c\\\n\u001b[31m\ufffd(x) (in a \"b\";c\\\n\u001b[31m\ufffd\\x28x\\x29)")x") != std::string::npos);
}

TEST_CASE("render: a live screen is the top format of the last ten seconds, cut to the terminal") {
    LiveTop live;
    NamedSample early = stack("c", {user_frame("main"), user_frame("early")}),
                late = stack("c", {user_frame("main"), user_frame("l\x1b[2Jate")});
    late.t_ns = 12'000'000'000;
    live.add(early);
    live.add(late);
    const std::string both = live.screen(9'000'000'000, 2, 50, 200);
    CHECK(both.starts_with("9 s  2 samples; of the last 9 s, 2:"));
    CHECK(both.find("early") != std::string::npos);
    CHECK(both.find('\x1b') == std::string::npos);
    const std::string text = live.screen(12'500'000'000, 1234, 3, 30);
    CHECK(text == "12 s  1,234 samples; of the...\n   SELF   TOTAL  FUNCTION\n100.0 % 100.0 %  l\xef\xbf\xbd[2Jate  ...");
    CHECK(live.screen(60'000'000'000, 1234, 3, 60).find("no samples") != std::string::npos);
    CHECK(live.screen(60'000'000'000, 1234, 1, 60).find('\n') == std::string::npos);
}
