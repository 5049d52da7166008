// What the stack holds, and the picture of it.
#include <string>
#include <string_view>
#include <vector>

#include "programs/draw/picture.h"
#include "programs/draw/stack.h"
#include "programs/explain/explanation.h"
#include "tests/support/spec_from.h"
#include "tests/support/test.h"

using namespace rawbpf;
using draw::Slot;

namespace {

explain::Explanation explained(const ObjectSpec &spec, size_t program = 0) {
    return explain::explain(spec, spec.programs[program],
                            explain::trace_of(spec, spec.programs[program], verifier::verify(spec, program)), nullptr);
}
size_t count(std::string_view text, std::string_view part) {
    size_t out = 0;
    for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++out;
    return out;
}

constexpr std::string_view kCounts = R"(.license "GPL"
.map counts hash key 4 value 16 entries 8
.program p "socket"
    *(u32 *)(r10 - 4) = 0
    r6 = r10
    r6 += -24
    *(u64 *)(r6 + 0) = 1
    *(u64 *)(r6 + 8) = 2
    r1 = counts ll
    r2 = r10
    r2 += -4
    r3 = r6
    r4 = 0
    call bpf_map_update_elem
    r1 = r10
    r1 += -40
    r2 = 16
    call bpf_get_current_comm
    r0 = *(u8 *)(r10 - 40)
    if r0 == 0 goto out
    r0 = 1
out:
    exit
)";

} // namespace

TEST_CASE("draw: the stack's slots, by who uses them and what for") {
    const ObjectSpec spec = test::spec_from(kCounts);
    std::string program(kCounts);
    program.replace(program.find("\"socket\""), 8, "\"kprobe/x\""); // bpf_get_current_comm is for tracing
    const ObjectSpec traced = test::spec_from(program);
    const std::vector<std::vector<Slot>> all = draw::stack_of(explained(traced));
    REQUIRE(all.size() == 1);
    const std::vector<Slot> &slots = all[0];
    REQUIRE(slots.size() == 6);
    CHECK((slots[0].offset == -4 && slots[0].size == 4));
    CHECK(slots[0].meanings == std::vector<std::string>{"key of counts: 4 bytes"});
    CHECK(slots[0].writers == std::vector<uint32_t>{0});
    CHECK((slots[1].offset == -16 && slots[1].writers == std::vector<uint32_t>{4})); // by r6: the walk knows where it points
    CHECK((slots[2].offset == -24 && slots[2].size == 8 && slots[2].writers == std::vector<uint32_t>{3}));
    CHECK((slots[3].offset == -24 && slots[3].size == 16));
    CHECK(slots[3].meanings == std::vector<std::string>{"value of counts: 16 bytes"});
    CHECK((slots[4].offset == -40 && slots[4].size == 1 && slots[4].readers.size() == 1));
    CHECK((slots[5].offset == -40 && slots[5].size == 16));
    REQUIRE(slots[5].meanings.size() == 1);
    CHECK(slots[5].meanings[0].starts_with("bpf_get_current_comm(buf) by "));
    // A program that was refused: only what names r10 beyond the place.
    const ObjectSpec refused = test::spec_from(".program p \"socket\"\nr0 = *(u64 *)(r10 - 8)\n*(u64 *)(r10 - 16) = 1\nexit\n");
    const std::vector<std::vector<Slot>> few = draw::stack_of(explained(refused));
    REQUIRE(few.size() == 1);
    REQUIRE(few[0].size() == 2);
    CHECK((few[0][0].readers == std::vector<uint32_t>{0} && few[0][1].writers == std::vector<uint32_t>{1}));
    // What is no part of the stack isn't drawn as one.
    const ObjectSpec above =
        test::spec_from(".program p \"socket\"\n*(u64 *)(r10 + 8) = 1\n*(u64 *)(r10 - 520) = 1\nr0 = 0\nexit\n");
    CHECK(draw::stack_of(explained(above))[0].empty());
}

TEST_CASE("draw: each function has a stack of its own") {
    const ObjectSpec spec = test::spec_from(
        ".program p \"socket\"\n*(u64 *)(r10 - 8) = 1\ncall f\nr0 = 0\nexit\n.function f\n*(u32 *)(r10 - 4) = 2\nr0 = 0\nexit\n");
    const std::vector<std::vector<Slot>> all = draw::stack_of(explained(spec));
    REQUIRE(all.size() == 2);
    CHECK((all[0].size() == 1 && all[0][0].size == 8));
    CHECK((all[1].size() == 1 && all[1][0].size == 4));
    // A function's own key, and its caller's value, by pointers.
    const ObjectSpec map = test::spec_from(
        ".map counts hash key 4 value 8 entries 8\n.program p \"socket\"\n*(u64 *)(r10 - 8) = 1\nr1 = r10\nr1 += -8\n"
        "call f\nr0 = 0\nexit\n.function f\nr3 = r1\n*(u32 *)(r10 - 4) = 2\nr2 = r10\nr2 += -4\nr1 = counts ll\nr4 = 0\n"
        "call bpf_map_update_elem\nr0 = 0\nexit\n");
    const std::vector<std::vector<Slot>> shared = draw::stack_of(explained(map));
    REQUIRE(shared.size() == 2);
    REQUIRE(shared[0].size() == 1);
    CHECK(shared[0][0].meanings == std::vector<std::string>{"value of counts: 8 bytes"});
    REQUIRE(shared[1].size() == 1);
    CHECK(shared[1][0].meanings == std::vector<std::string>{"key of counts: 4 bytes"});
}

TEST_CASE("draw: blocks, jumps forwards and back, maps, and names that aren't markup") {
    const ObjectSpec spec = test::spec_from(
        ".map m array key 4 value 8 entries 2\n.program p \"socket\"\nr6 = 4\nagain:\nr6 += -1\nif r6 == 0 goto out\n"
        "r1 = m ll\ngoto again\nout:\nr0 = 0\nexit\n");
    ObjectSpec named = spec;
    named.name = "<b>&\"";
    std::vector<explain::Explanation> all;
    all.push_back(explained(named));
    const std::string text = draw::picture(named, all);
    CHECK(text.starts_with("<svg xmlns="));
    CHECK(text.ends_with("</svg>\n"));
    CHECK(count(text, "<b>") == 0);
    CHECK(count(text, "&lt;b&gt;&amp;") == 2);   // the title, and the picture's
    CHECK(count(text, "<rect x=") == 1 + 1 + 4); // the program, the map, four blocks
    CHECK(count(text, "class=\"j\" marker-end") == 1);
    CHECK(count(text, "class=\"b\" marker-end") == 1);
    CHECK(count(text, "class=\"u\"") == 1);
    CHECK(text.find("m: array, 2 entries") != std::string::npos);
    CHECK(text.find("the model of the verifier accepts it") != std::string::npos);
}
