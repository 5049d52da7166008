// NDJSON: golden lines, and bytes that are no UTF-8.
#include <algorithm>

#include "programs/render/json_line.h"
#include "programs/render/run_facts.h"
#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

TEST_CASE("render: json, golden lines") {
    if (!writes_json()) SKIP("this build writes no JSON");
    Ledger ledger{
        .fired = 5, .shown = 2, .filtered = 1, .sampled_out = 1, .lost = {{"ring_full", 1}}, .degraded = {{"no_symbol", 1}}};
    std::string text = rendered(
        Format::json, {{stack("split", {user_frame("main")}, {kernel_frame("sys_read"), kernel_frame("")}), 1}}, {}, ledger);
    CHECK(
        text ==
        R"({"type":"header","schema":1,"command":["rawbpf","profile","-f","svg","--","./my split","3"],"version":"0.1.0","kernel":"6.18.5","arch":"x86_64","cpus":4,"start":"2025-10-28T13:47:15.300424689Z"}
{"type":"sample","time":"2025-10-28T13:47:15.300424689Z","t_ns":1500000,"comm":"split","pid":2133,"tid":2134,"cpu":4,"kernel":[{"addr":"0xffffffff8112a0b4","symbol":null,"symbol_offset":null,"module":null,"file_offset":null,"build_id":null},{"addr":"0xffffffff8112a0b4","symbol":"sys_read","symbol_offset":100,"module":"vmlinux","file_offset":null,"build_id":null}],"user":[{"addr":"0x401136","symbol":"main","symbol_offset":22,"module":"/usr/bin/split","file_offset":4406,"build_id":"abcd"}]}
{"type":"ledger","fired":5,"shown":2,"filtered":1,"sampled_out":1,"lost":{"ring_full":1},"degraded":{"no_symbol":1}}
)");
}

TEST_CASE("render: json, places in the source where they are known") {
    if (!writes_json()) SKIP("this build writes no JSON");
    std::string text = rendered(
        Format::json,
        {{stack("draw", {source_frame("area", "/src/shapes.cpp", 40, false), source_frame("square", "/src/shapes.h", 12, true)}),
          1}});
    CHECK(text.find(R"("user":[{"addr":"0x401136","symbol":"square","symbol_offset":null,"module":"/usr/bin/split",)"
                    R"("file_offset":4406,"build_id":"abcd","file":"/src/shapes.h","line":12,"inlined":true},)"
                    R"({"addr":"0x401136","symbol":"area","symbol_offset":22,"module":"/usr/bin/split",)"
                    R"("file_offset":4406,"build_id":"abcd","file":"/src/shapes.cpp","line":40}]})") != std::string::npos);
}

TEST_CASE("render: json replaces what isn't UTF-8 and escapes the rest") {
    if (!writes_json()) SKIP("this build writes no JSON");
    std::string text = rendered(Format::json, {{stack("a\"\n\xff", {user_frame("b\\\x01\xc0")}), 1}});
    CHECK(text.find(R"("comm":"a\"\n)"
                    "\\ufffd\"") != std::string::npos);
    CHECK(text.find(R"("symbol":"b\\\u0001)"
                    "\\ufffd\"") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("json lines: fields in order, type first") {
    if (!writes_json()) SKIP("this build writes no JSON");
    std::string out;
    {
        JsonLine line(out, "x");
        line.text("a", "q\"b\\s").text("empty", "").text_or_null("none", "").number("n", 18446744073709551615ull);
        line.signed_number("s", -1).truth("t", true).null("z").hex("h", 0xffffffffffffffff);
    }
    CHECK(out ==
          "{\"type\":\"x\",\"a\":\"q\\\"b\\\\s\",\"empty\":\"\",\"none\":null,\"n\":18446744073709551615,\"s\":-1,\"t\":true,"
          "\"z\":null,\"h\":\"0xffffffffffffffff\"}\n");
}

TEST_CASE("json lines: an object in an object, and none of its fields") {
    if (!writes_json()) SKIP("this build writes no JSON");
    std::string out;
    {
        JsonLine line(out, "x");
        JsonObject(line.raw("empty"));
        JsonObject(line.raw("inner")).number("n", 1).text("brace", "{").null("z");
        line.number("after", 2);
    }
    CHECK(out == R"({"type":"x","empty":{},"inner":{"n":1,"brace":"{","z":null},"after":2})"
                 "\n");
}

TEST_CASE("json lines: text is valid, and harmless on a terminal, whatever it is") {
    if (!writes_json()) SKIP("this build writes no JSON");
    const auto json = [](std::string_view text) {
        std::string out;
        append_json(out, text);
        return out;
    };
    CHECK(json("") == R"("")");
    CHECK(json("a/b\"c\\d") == R"("a/b\"c\\d")");
    CHECK(json("\b\f\n\r\t") == R"("\b\f\n\r\t")");
    CHECK(json(std::string_view("\0\x01\x1b[31m\x1f\x7f", 9)) == R"("\u0000\u0001\u001b[31m\u001f\u007f")");
    CHECK(json("\xc2\x9b") == R"("\u009b")"); // the C1 control sequence introducer
    CHECK(json("\xc3\xa9\xf0\x9f\x90\x9d") == R"("\u00e9\ud83d\udc1d")");
    CHECK(json("\xff\xe2\x82") == R"("\ufffd\ufffd")");
}

TEST_CASE("json ledgers: what would make stacks whole, in fields and as a sentence") {
    if (!writes_json()) SKIP("this build writes no JSON");
    const StackAdvice advice{"lib\"x.so", 200, 50, "--depth 255 shows more frames"};
    CHECK(advice.sentence() == "25 % of the stacks in lib\"x.so end early: --depth 255 shows more frames");
    Ledger ledger;
    ledger.cost = render::RunCost{.advice = {advice}};
    std::string text;
    append_json_ledger(text, ledger);
    CHECK(text.ends_with(
        R"("degraded":{},"advice":[{"where":"lib\"x.so","stacks":200,"early":50,"advice":"--depth 255 shows more frames"}]})"
        "\n"));
}

TEST_CASE("json headers: a machine of which little is known, and why") {
    if (!writes_json()) SKIP("this build writes no JSON");
    RunInfo run;
    run.environment = [] {
        Environment out;
        out.load = "0.52 1.50 2";
        out.mitigations.emplace();
        out.unread = {{"bpf_jit", "/proc/x: Permission denied (EACCES)"}};
        return out;
    };
    std::string text;
    append_json_header(text, run);
    run.environment = [] { return Environment(); };
    std::string unknown, none;
    append_json_header(unknown, run);
    append_json_header(none, {});
    CHECK(none.find("environment") == std::string::npos);
    CHECK(text.ends_with(
        R"_("environment":{"cpu":null,"virtualization":null,"governor":null,"clock":null,"bpf_jit":null,"bpf_jit_harden":null,)_"
        R"_("load":[0.52,1.50,2],"mitigations":{},"unread":{"bpf_jit":"/proc/x: Permission denied (EACCES)"}}})_"
        "\n"));
    CHECK(unknown.ends_with("\"load\":null,\"mitigations\":null,\"unread\":{}}}\n"));
}
