// struct_ops maps, arenas and exception callbacks, out of a synthetic object; and the calls that gcc's assembler writes.
#include "asm/kinds.h"
#include "runtime/object/elf_object.h"
#include "tests/support/test.h"
#include "tests/unit/object/sample.h"

using namespace rawbpf;
using test::ops_object;

namespace {

ObjectSpec parsed(const test::OpsOptions &options = {}) {
    auto spec = parse_object(ops_object(options), "ops.o");
    if (!spec) FAIL(spec.error().message());
    return *spec;
}

std::string problem(const test::OpsOptions &options) {
    auto spec = parse_object(ops_object(options), "ops.o");
    return spec ? std::string("fine") : spec.error().message();
}

} // namespace

TEST_CASE("struct_ops: a map a variable, behind all others, with its programs as slots") {
    const ObjectSpec spec = parsed();
    REQUIRE(spec.maps.size() == 3);
    CHECK(spec.maps[0].name == "arena");
    const MapSpec &live = spec.maps[1], &spare = spec.maps[2];
    CHECK(live.name == "live");
    CHECK(live.type == uint32_t(MapType::STRUCT_OPS));
    CHECK(live.flags == 1u << 13); // BPF_F_LINK
    CHECK(live.autocreate);
    CHECK(live.value_size == 24);
    REQUIRE(live.contents.size() == 24);
    CHECK(load<uint64_t>(live.contents.data() + 8) == 5);
    CHECK(load<char>(live.contents.data() + 16) == 'l');
    REQUIRE(live.slots.size() == 1);
    CHECK(live.slots[0].index == 0);
    CHECK(live.slots[0].target == "on_init");
    CHECK(spare.name == "spare");
    CHECK(!spare.autocreate);
    CHECK(spare.flags == 0);
    CHECK(spare.slots.empty());
}

TEST_CASE("struct_ops: only programs, only in members that point to functions") {
    CHECK(problem({.relocation_at = 8}).find("byte 8 isn't a pointer to a function") != std::string::npos);
    CHECK(problem({.relocation_at = 4}).find("byte 4 isn't a pointer") != std::string::npos);
    CHECK(problem({.relocation_at = 24}).find("outside of all struct_ops maps") != std::string::npos);
    CHECK(problem({.relocate_to_text = true}).find("caught isn't a program") != std::string::npos);
}

TEST_CASE("object: variables in an arena are offsets in its contents") {
    const ObjectSpec spec = parsed();
    const ProgramSpec &program = spec.programs.at(0);
    REQUIRE(program.fixups.size() == 1);
    CHECK((program.fixups[0].kind == Fixup::Kind::map_value));
    CHECK(program.fixups[0].map == 0);
    CHECK(program.fixups[0].offset == 8);
    REQUIRE(spec.maps[0].contents.size() == 16);
    CHECK(load<uint64_t>(spec.maps[0].contents.data() + 8) == 7);
    CHECK(problem({.with_arena = false}).find("no map of that type") != std::string::npos);
}

TEST_CASE("object: an exception callback is appended, with what it calls, though nothing calls it") {
    const ObjectSpec spec = parsed();
    const ProgramSpec &program = spec.programs.at(0);
    REQUIRE(program.subprograms.size() == 3);
    CHECK(program.subprograms[1].name == "caught");
    CHECK(program.subprograms[1].insn == 4);
    CHECK(program.subprograms[2].name == "helper");
    CHECK(program.insns[4].imm == 1);
    CHECK(parsed({.tagged = false}).programs.at(0).subprograms.size() == 1);
}

TEST_CASE("object: a call whose addend is the symbol's own value goes to the symbol") {
    for (const int32_t imm : {-1, 15}) { // clang's, and that of gcc's assembler up to 2.40
        auto spec = parse_object(test::call_object(imm), "call.o");
        if (!spec) FAIL(spec.error().message());
        CHECK(spec->programs.at(0).subprograms.at(1).name == "callee");
        CHECK(spec->programs.at(0).insns[0].imm == 1);
    }
    CHECK(!parse_object(test::call_object(0), "call.o"));
}

TEST_CASE("struct_ops: every cut of the object is an error or a spec") {
    const std::vector<std::byte> whole = ops_object();
    for (size_t size = 0; size < whole.size(); ++size) (void)parse_object(Bytes(whole).first(size), "cut.o");
}
