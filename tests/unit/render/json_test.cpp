// NDJSON: golden lines, and bytes that are no UTF-8.
#include <algorithm>

#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

TEST_CASE("render: json, golden lines") {
    Ledger ledger{
        .fired = 5, .shown = 2, .filtered = 1, .sampled_out = 1, .lost = {{"ring_full", 1}}, .degraded = {{"no_symbol", 1}}};
    std::string text = rendered(
        Format::json, {{stack("split", {user_frame("main")}, {kernel_frame("sys_read"), kernel_frame("")}), 1}}, {}, ledger);
    if (text.starts_with("error")) SKIP("this build writes no JSON");
    CHECK(
        text ==
        R"({"type":"header","schema":1,"command":["rawbpf","profile","-f","svg","--","./my split","3"],"version":"0.1.0","kernel":"6.18.5","arch":"x86_64","cpus":4,"start":"2025-10-28T13:47:15.300424689Z"}
{"type":"sample","time":"2025-10-28T13:47:15.300424689Z","t_ns":1500000,"comm":"split","pid":2133,"tid":2134,"cpu":4,"kernel":[{"addr":"0xffffffff8112a0b4","symbol":null,"symbol_offset":null,"module":null,"file_offset":null,"build_id":null},{"addr":"0xffffffff8112a0b4","symbol":"sys_read","symbol_offset":100,"module":"vmlinux","file_offset":null,"build_id":null}],"user":[{"addr":"0x401136","symbol":"main","symbol_offset":22,"module":"/usr/bin/split","file_offset":4406,"build_id":"abcd"}]}
{"type":"ledger","fired":5,"shown":2,"filtered":1,"sampled_out":1,"lost":{"ring_full":1},"degraded":{"no_symbol":1}}
)");
}

TEST_CASE("render: json replaces what isn't UTF-8 and escapes the rest") {
    std::string text = rendered(Format::json, {{stack("a\"\n\xff", {user_frame("b\\\x01\xc0")}), 1}});
    if (text.starts_with("error")) SKIP("this build writes no JSON");
    CHECK(text.find(R"("comm":"a\"\n)"
                    "\xef\xbf\xbd\"") != std::string::npos);
    CHECK(text.find(R"("symbol":"b\\\u0001)"
                    "\xef\xbf\xbd\"") != std::string::npos);
    CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
