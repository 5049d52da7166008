// perf-PID.map: what JITs write, and what they don't.
#include "runtime/symbols/perf_map.h"

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/symbols/long_names.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::symbols;

TEST_CASE("perf map: names the function that covers an address") {
    PerfMap map = PerfMap::parse("7f2a1c0041c0 2e0 LazyCompile:*fib /app/a.js:3\n"
                                 "0x1000 0x10 with prefix\n"
                                 "2000 20 _ZN1a1bEv\n");
    CHECK(map.size() == 3);
    REQUIRE(map.find(0x7f2a1c0041c8));
    CHECK(map.find(0x7f2a1c0041c8)->symbol == "LazyCompile:*fib /app/a.js:3");
    CHECK(map.find(0x7f2a1c0041c8)->offset == 8);
    CHECK(!map.find(0x7f2a1c0041c0 + 0x2e0));
    CHECK(!map.find(0xfff));
    CHECK(map.find(0x100f)->symbol == "with prefix");
    CHECK(map.find(0x2000)->symbol == "a::b()");
}

TEST_CASE("perf map: where memory is used again the last line wins") {
    PerfMap map = PerfMap::parse("1000 100 old\n1080 10 inner\n1000 100 new\n1000 40 newest\n");
    CHECK(map.find(0x1000)->symbol == "newest");
    CHECK(map.find(0x1050)->symbol == "new");
    CHECK(map.find(0x1084)->symbol == "new");
    CHECK(map.find(0x1084)->offset == 0x84);
}

TEST_CASE("perf map: malformed lines are passed over") {
    std::string_view text =
        "1000 0 empty\n1000\n1000 10\n1000 10 \nzz 10 a\n1000 zz a\nffffffffffffffff 10 wraps\n1000 fffffffff huge\n";
    CHECK(PerfMap::parse(text).size() == 0);
    for (size_t cut = 0; cut <= text.size(); ++cut) CHECK(PerfMap::parse(text.substr(0, cut)).size() <= 1);
    CHECK(PerfMap::parse("").find(0) == std::nullopt);
}

TEST_CASE("perf map: a process without one is not_found") {
    Result<PerfMap> map = PerfMap::load(0x7ffffffe);
    REQUIRE(!map);
    CHECK(map.error().kind == Errc::not_found);
}

TEST_CASE("perf map: a name of any length is cut, and its line costs no memory") {
    const std::string longest(symbols::kLongestName, 'a'), longer(symbols::kLongestName + 1, 'b'), huge(5 << 20, 'c');
    std::string text = "1000 10 " + longest + "\n2000 10 " + longer + "\n3000 10 " + huge + "\n4000 10 after\n5000 10 " + huge;
    const auto check = [&](const PerfMap &map) {
        CHECK(map.size() == 5);
        CHECK(map.find(0x1000)->symbol == longest);
        CHECK(map.find(0x2000)->symbol.size() == symbols::kLongestName);
        CHECK(map.find(0x2000)->symbol.ends_with("bbb..."));
        CHECK(map.find(0x3000)->symbol.size() == symbols::kLongestName);
        CHECK(map.find(0x4000)->symbol == "after");
        CHECK(map.find(0x5000)->symbol.ends_with("ccc..."));
        CHECK(map.memory() < 64 << 10);
    };
    check(PerfMap::parse(text));
    Fd file(memfd_create("perf map", MFD_CLOEXEC));
    REQUIRE(file);
    REQUIRE(write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    auto read = PerfMap::read(file);
    REQUIRE(read);
    check(*read);
}

TEST_CASE("names: what is cut stays UTF-8") {
    const std::string two = "\xc3\xa9", three = "\xe2\x82\xac", four = "\xf0\x9f\x90\x9d";
    for (const std::string &letter : {two, three, four})
        for (size_t before = 0; before < 4; ++before) {
            std::string name(before, 'x');
            while (name.size() <= symbols::kLongestName) name += letter;
            const std::string cut = symbols::within_bound(name);
            CHECK(cut.size() <= symbols::kLongestName);
            CHECK((cut.size() - 3 - before) % letter.size() == 0);
        }
    CHECK(symbols::within_bound("short") == "short");
}
