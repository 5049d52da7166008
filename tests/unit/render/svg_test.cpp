// The flame graph: structure, escaping, pruning. How it looks and works is tested in a browser, in tests/browser.
#include <algorithm>

#include "tests/support/test.h"
#include "tests/unit/render/samples.h"

using namespace rawbpf;
using namespace rawbpf::render;
using namespace rawbpf::test;

static size_t occurrences(const std::string &text, const std::string &part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
    return n;
}

TEST_CASE("render: svg frames stand where their samples are") {
    std::string svg =
        rendered(Format::svg, {{stack("split", {user_frame("main"), user_frame("hot_b")}), 1},
                               {stack("split", {user_frame("main"), user_frame("hot_a")}, {kernel_frame("sys_read")}), 3}});
    CHECK(svg.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\""));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find(">CPU flame graph: &#39;./my split&#39; 3</text>") != std::string::npos);
    CHECK(svg.find("4 samples at 99 Hz · Linux 6.18.5 x86_64 · 4 CPUs · 2025-10-28 13:47 UTC") != std::string::npos);
    // all, split, main, hot_a, sys_read, hot_b: children by name, not by arrival.
    CHECK(occurrences(svg, "<g class=\"f ") == 6);
    CHECK(svg.find("data-x=\"0\" data-w=\"3\"><title>hot_a\nuser, split\n3 samples, 75.00 %</title>") != std::string::npos);
    CHECK(svg.find("data-x=\"3\" data-w=\"1\"><title>hot_b\nuser, split\n1 sample, 25.00 %</title><rect x=\"894.0\"") !=
          std::string::npos);
    CHECK(svg.find("<title>sys_read\nkernel\n3 samples") != std::string::npos);
}

TEST_CASE("render: svg refers to nothing outside and lets no name out of its place") {
    std::string svg =
        rendered(Format::svg, {{stack("</title><script>", {user_frame("a<b>&\"'\n\x01\xff]]>")}), 1}}, {.title = "<&]]>"});
    CHECK(occurrences(svg, "http") == occurrences(svg, "http://www.w3.org/"));
    CHECK(svg.find("</title><script>") == std::string::npos);
    CHECK(occurrences(svg, "<script>") == 1);
    CHECK(svg.find("a&lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd]]&gt;\nuser") != std::string::npos);
    CHECK(svg.find(">&lt;&amp;]]&gt;</text>") != std::string::npos);
}

TEST_CASE("render: svg leaves out what is too narrow to see, and says so") {
    std::vector<std::pair<NamedSample, uint64_t>> samples{{stack("a", {user_frame("wide")}), 1000000}};
    for (int i = 0; i < 50; ++i) samples.emplace_back(stack("a", {user_frame("narrow" + std::to_string(i))}), 1);
    std::string svg = rendered(Format::svg, samples);
    CHECK(occurrences(svg, "<g class=\"f ") == 3);
    CHECK(svg.find("50 stacks narrower than a quarter of a pixel are left out.") != std::string::npos);
    CHECK(rendered(Format::svg, {}).find("0 samples") != std::string::npos);
}

TEST_CASE("render: svg is the same whatever the order of the samples") {
    std::vector<std::pair<NamedSample, uint64_t>> samples;
    for (int i = 0; i < 20; ++i)
        samples.emplace_back(stack("c" + std::to_string(i % 3), {user_frame("f" + std::to_string(i % 7)), user_frame("g")}),
                             i + 1);
    std::string one = rendered(Format::svg, samples);
    std::reverse(samples.begin(), samples.end());
    CHECK(one == rendered(Format::svg, samples));
}
