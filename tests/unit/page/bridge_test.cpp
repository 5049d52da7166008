// What the page is told: JSON text, by the same functions as the commands' answers.
#include <string>
#include <string_view>

#include "page/bridge.h"
#include "tests/support/test.h"

using namespace rawbpf;
using page::Bridge;

namespace {

bool has(const std::string &text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr const char *kCounting = ".map counts array key u32 value u64 entries 4\n"
                                  ".program count \"socket\"\n"
                                  "    *(u32 *)(r10 - 4) = 2\n"
                                  "    r1 = counts ll\n"
                                  "    r2 = r10\n"
                                  "    r2 += -4\n"
                                  "    call bpf_map_lookup_elem\n"
                                  "    if r0 == 0 goto out\n"
                                  "    *(u64 *)(r0 + 0) = 7\n"
                                  "out:\n"
                                  "    r0 = 0\n"
                                  "    exit\n";

} // namespace

TEST_CASE("page: a text becomes instructions with their bits") {
    Bridge bridge;
    const std::string out = bridge.assemble("r0 = 42\nexit\n", "prog.asm");
    CHECK(has(out, R"("mistakes":[],"warnings":[],"programs":[{"name":"main","section":"socket","packet":false,)"));
    CHECK(has(out,
              R"({"at":0,"line":1,"text":"r0 = 42","name":"mov","undefined":null,"bytes":"b7 00 00 00 2a 00 00 00","fields":[)"));
    CHECK(has(out, R"({"name":"imm","byte":4,"low_bit":0,"bits":32,"value":42,)"));
    CHECK(has(out, R"("at":1,"line":2,"text":"exit")"));
    // A wide one is one instruction of sixteen bytes.
    CHECK(has(bridge.assemble("r1 = 5 ll\nr0 = 0\nexit", "prog.asm"), R"("at":2,"line":2)"));
}

TEST_CASE("page: mistakes have a place; hex is read as in the lessons") {
    Bridge bridge;
    const std::string out = bridge.assemble("r0 = 0\nr10 = 5\nexit\n", "prog.asm");
    CHECK(has(out, R"("mistakes":[{"line":2,"column":1,"message":"r10)"));
    CHECK(has(out, R"("programs":[])"));
    CHECK(has(bridge.enter(0, "", false), R"({"error":"there is nothing to run)"));
    CHECK(has(bridge.assemble("b7 00 00 00 2a 00 00 00\n95 00 00 00 00 00 00 00\n", "lab.hex"), R"("text":"r0 = 42")"));
    CHECK(has(bridge.assemble("b7 00 00\n", "lab.hex"), R"("mistakes":[{"line":1,)"));
    CHECK(has(bridge.assemble("", "prog.asm"), R"("programs":[)"));
    CHECK(has(bridge.assemble(".include \"x\"\n", "prog.asm"), R"("mistakes":[{"line":1,)"));
}

TEST_CASE("page: a run goes forward, back, to its end and home") {
    Bridge bridge;
    CHECK(has(bridge.move("forward"), R"({"error":"nothing runs")"));
    (void)bridge.assemble(kCounting, "prog.asm");
    const std::string begin = bridge.enter(0, "", false);
    CHECK(has(begin, R"({"step":0,"ended":false,"fault":null,"program":0,"pc":0,"line":3,)"));
    CHECK(has(begin, R"("verdict":"accepted")"));
    const std::string one = bridge.move("forward");
    CHECK(has(one, R"("step":1)"));
    CHECK(has(one, R"({"offset":-8,"bytes":"00 00 00 00 02 00 00 00","changed":240,)"));
    CHECK(bridge.move("back").substr(0, 40) == begin.substr(0, 40));
    const std::string end = bridge.move("run");
    CHECK(has(end, R"("ended":true)"));
    CHECK(has(end, R"("maps":[{"name":"counts",)"));
    CHECK(has(end, R"({"key":"2","value":"07 00 00 00 00 00 00 00","changed":false})"));
    CHECK(has(bridge.move("home"), R"({"step":0,)"));
    CHECK(has(bridge.move("step", 3), R"({"step":)"));
    CHECK(has(bridge.move("sideways"), R"("error":)"));
    CHECK(has(bridge.enter(7, "", false), R"("error":)"));
    CHECK(has(bridge.enter(0, "0g", false), R"(no hex digit)"));
}

TEST_CASE("page: what the verifier knows, and what it refuses") {
    Bridge bridge;
    (void)bridge.assemble("r0 = *(u32 *)(r1 + 0)\nr0 &= 15\nexit", "prog.asm");
    CHECK(has(bridge.verify(), R"("verdict":"accepted")"));
    (void)bridge.enter(0, "00 11 22 33", true);
    (void)bridge.move("forward");
    CHECK(has(bridge.move("forward"), R"(umax32=15)"));
    CHECK(has(bridge.assemble(".program p \"xdp\"\nr0 = 2\nexit", "prog.asm"), R"("section":"xdp","packet":true)"));
    (void)bridge.assemble("r0 = r3\nexit", "prog.asm");
    const std::string out = bridge.verify();
    CHECK(has(out, R"("verdict":"refused","insn":0,"reason":"R3 !read_ok")"));
    CHECK(has(out, R"("line":1,)"));
    CHECK(Bridge().verify() == R"({"verdicts":[]})");
}

TEST_CASE("page: a loop without an end is stopped, a fault is told") {
    Bridge bridge;
    (void)bridge.assemble("again: r0 = 1\ngoto again\nexit", "prog.asm");
    (void)bridge.enter(0, "", false);
    CHECK(has(bridge.move("run"), R"({"step":200000,"ended":false,"fault":null)"));
    (void)bridge.assemble("r1 = 0\nr0 = *(u8 *)(r1 + 0)\nexit", "prog.asm");
    (void)bridge.enter(0, "", false);
    CHECK_FALSE(has(bridge.move("run"), R"("fault":null)"));
}

TEST_CASE("page: a lesson's check is the one of rawbpf lab check") {
    constexpr std::string_view kCheck = "packet 0011\n# why 0: nothing is counted\n# at: r0 =\nexpect packet.result == 5\n";
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "r0 = 5\nexit", kCheck),
              R"({"passed":true,"expectations":1,"failed":0,"findings":[]})"));
    CHECK(has(
        Bridge::check(1, "01-bytes", "lab.asm", "r0 = 0\nexit", kCheck),
        R"("findings":[{"kind":"expectation","text":"packet.result: expected 5, got 0: nothing is counted, lab.asm:1","line":1,)"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "# Lesson 2: x\nr0 = 0\nexit", kCheck), "of lesson 2"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "# nothing\n", kCheck), "is empty, but for comments"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "r0 = r4\nexit", kCheck), R"("kind":"refused")"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "r0 += \nexit", kCheck), R"("kind":"assembly")"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "r0 = 5\nexit", "# needs: kernel\nexpect 1 == 1\n"),
              R"("error":"this lesson's check runs in a kernel)"));
    CHECK(has(Bridge::check(1, "01-bytes", "lab.asm", "r0 = 5\nexit", "nonsense here\n"), R"("error":)"));
}

TEST_CASE("page: a run again has the maps as they were, and the input that was given") {
    Bridge bridge;
    const std::string made = bridge.assemble(".map n array key u32 value u64 entries 1\n"
                                             ".program p \"xdp\"\n"
                                             "r6 = *(u32 *)(r1 + 0)\n"
                                             "r7 = *(u32 *)(r1 + 4)\n"
                                             "r2 = r6\nr2 += 1\nif r2 > r7 goto out\n"
                                             "r7 = *(u8 *)(r6 + 0)\n"
                                             "*(u8 *)(r6 + 0) = 9\n"
                                             "*(u32 *)(r10 - 4) = 0\n"
                                             "r1 = n ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\n"
                                             "if r0 == 0 goto out\nr1 = 1\nlock *(u64 *)(r0 + 0) += r1\n"
                                             "out:\nr0 = r7\nexit\n",
                                             "lab.asm");
    CHECK(has(made, R"("mistakes":[])"));
    CHECK(has(bridge.again(), R"("error":"nothing ran")"));
    CHECK(has(bridge.enter(0, "05", true), R"("step":0)"));
    CHECK(has(bridge.move("run"), R"("value":"01 00 00 00 00 00 00 00")"));
    CHECK(has(bridge.again(), R"("step":0)"));
    const std::string second = bridge.move("run");
    CHECK(has(second, R"("value":"02 00 00 00 00 00 00 00")"));
    CHECK(has(second, R"("registers":[{"value":"5")")); // not the 9 that the first run left in the packet
}

TEST_CASE("page: an experiment is carried out in the emulator") {
    const std::string good = Bridge::experiment("asm {\nr0 = 7\nexit\n}\npacket 0011\nprint \"r0 is {packet.result}\"\n"
                                                "expect packet.result == 7\nexpect packet.result == 8\n",
                                                "a.exp");
    CHECK(has(good, "r0 is 7"));
    CHECK(has(good, R"("failed":1,"expectations":2)"));
    CHECK(has(Bridge::experiment("nonsense\n", "a.exp"), R"("error":"a.exp:1)"));
    CHECK(has(Bridge::experiment("asm {\nr0 = *(u8 *)(r9 + 0)\nexit\n}\npacket 00\n", "a.exp"), R"("error":)"));
}
