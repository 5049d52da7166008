// Addresses that a clock saw, as places of a program.
#include "programs/running/sampled.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/test.h"

using namespace rawbpf;
using inspect::MachineFunction;
using running::CodeSamples;

namespace {

CodeSamples samples() {
    MachineFunction lined{.name = "main", .address = 0x1000, .code = std::vector<std::byte>(0x40), .lines = {}};
    lined.lines.push_back({.offset = 0, .file = "a.c", .text = "int x = 1;", .line = 3});
    lined.lines.push_back({.offset = 0x10, .file = "a.c", .text = "x += y;", .line = 4});
    MachineFunction bare{.name = "sub", .address = 0x1040, .code = std::vector<std::byte>(0x10), .lines = {}};
    MachineFunction hidden{.name = "unknown", .address = 0, .code = std::vector<std::byte>(0x10), .lines = {}};
    return CodeSamples({std::move(lined), std::move(bare), std::move(hidden)});
}

} // namespace

TEST_CASE("running: samples belong to functions, lines and offsets") {
    CodeSamples s = samples();
    for (uint64_t address : {0x1000, 0x100f, 0x1010, 0x103f, 0x103f, 0x1040, 0x1044, 0x1044}) s.add(address);
    for (uint64_t address : {0xfff, 0x1050, 0x0, 0x8}) s.add(address); // outside, and where nobody knows the address
    CHECK(s.inside() == 8);
    CHECK(s.elsewhere() == 4);
    const std::string text = s.text();
    CHECK(text.find("main at 0x1000: 64 bytes, 5 samples, 62.5 %\n") == 0);
    CHECK(text.find("         2   25.0 %  a.c:3  int x = 1;\n         3   37.5 %  a.c:4  x += y;\n") != std::string::npos);
    CHECK(
        text.find("sub at 0x1040: 16 bytes, 3 samples, 37.5 %\n         1   12.5 %      +0x0\n         2   25.0 %      +0x4\n") !=
        std::string::npos);
    CHECK(text.find("unknown at 0x0: 16 bytes, 0 samples, 0.0 %\n") != std::string::npos);
}

TEST_CASE("running: no sample at all") { CHECK(samples().text().find("main at 0x1000: 64 bytes, 0 samples, 0.0 %\n") == 0); }
