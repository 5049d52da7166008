// Other tools' formats: golden small cases, and hostile names. Whole files are read by those tools themselves in tests/formats.
#include <algorithm>
#include <map>

#include "programs/render/gzip.h"
#include "programs/render/json_line.h"
#include "programs/render/lab_formats.h"
#include "programs/render/thread_stacks.h"
#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

namespace {

std::string hostile() { return "a \"b\";c\\\n\x1b[31m\xff(x)"; }

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
          "a\\x20\"b\"\\x3bc\\x5c\\x0a\\x1b[31m\xff(x)     2134 [004] 1761659235.300424:   10101010 cpu-clock: \n"
          "\t          401136 a \"b\":c\\\\x0a\\x1b[31m\xff(x)+0x16 (a\\x20\"b\"\\x3bc\\x5c\\x0a\\x1b[31m\xff\\x28x\\x29)\n"
          "\n");
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
    for (size_t i = 0; i < std::size(kFormatNames); ++i) {
        const auto format = static_cast<Format>(i);
        CHECK(format_named(kFormatNames[i]) == format);
        if (is_json(format) && !writes_json()) continue;
        std::string text;
        Writer out(text);
        CHECK(make_any_renderer(format, {}, out).has_value());
        CHECK(make_renderer(format, {}, out).has_value() == !in_lab(format));
        CHECK(!(streams(format) && aggregates(format)));
    }
}
