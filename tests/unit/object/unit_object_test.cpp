// DSL units into specs.
#include "runtime/object/unit_object.h"

#include "asm/assemble.h"
#include "asm/kinds.h"
#include "runtime/object/core.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr Insn kExit = {0x95, 0, 0, 0, 0};
Insn mov(uint8_t dst, int32_t imm) { return {0xb7, dst, 0, 0, imm}; }
constexpr Insn kCall = {0x85, 0, 1, 0, 0};
Insn wide(uint8_t dst) { return {0x18, dst, 0, 0, 0}; }

/// prog { counts; config + 8; walk(); &callback; task.pid }   walk { callback() }   callback { }
Unit sample_unit() {
    Unit unit;
    unit.name = "twin";
    unit.maps.push_back({"counts", uint32_t(MapType::HASH), 4, 8, 16, 0, {}, false});
    unit.maps.push_back({".rodata", uint32_t(MapType::ARRAY), 4, 16, 1, 0, {1, 2, 3}, true});
    Function prog;
    prog.name = "prog";
    prog.section = "perf_event";
    prog.insns = {wide(1), {}, wide(2), {}, kCall, wide(3), {}, {0x61, 4, 1, 0, 0}, kExit};
    prog.refs = {{0, RefKind::map, "counts", 0},
                 {2, RefKind::map_value, ".rodata", 8},
                 {4, RefKind::call, "walk", 0},
                 {5, RefKind::function, "callback", 0},
                 {7, RefKind::field, "task.pid", 0}};
    prog.lines = {{0, "twin.cpp", 10, 5, "load(counts)"}, {2, "twin.cpp", 11, 5, "call(walk)"}, {3, "twin.cpp", 12, 1, "half"}};
    Function walk;
    walk.name = "walk";
    walk.insns = {mov(0, 1), kCall, kExit};
    walk.refs = {{1, RefKind::call, "callback", 0}};
    walk.lines = {{1, "twin.cpp", 20, 1, "walk"}};
    Function callback;
    callback.name = "callback";
    callback.insns = {mov(0, 0), kExit};
    callback.lines = {{0, "twin.cpp", 30, 1, "callback"}};
    unit.functions = {walk, prog, callback};
    return unit;
}

} // namespace

TEST_CASE("unit: maps, programs and references become a spec") {
    auto spec = object_of(sample_unit());
    REQUIRE(spec);
    CHECK(spec->license == "Dual MIT/GPL");
    REQUIRE(spec->maps.size() == 2);
    CHECK(spec->maps[0].name == "counts");
    CHECK(spec->maps[0].max_entries == 16);
    const MapSpec *rodata = spec->find_map(".rodata");
    REQUIRE(rodata);
    CHECK(rodata->name == "twin.rodata");
    CHECK(rodata->freeze);
    CHECK(rodata->flags == 1u << 7);
    CHECK(rodata->contents.size() == 16);

    REQUIRE(spec->programs.size() == 1);
    const ProgramSpec &prog = spec->programs[0];
    CHECK(prog.type == uint32_t(ProgramType::PERF_EVENT));
    REQUIRE(prog.subprograms.size() == 3);
    CHECK(prog.subprograms[1].name == "walk");
    CHECK(prog.subprograms[1].insn == 9);
    CHECK(prog.subprograms[2].name == "callback");
    CHECK(prog.subprograms[2].insn == 12);
    CHECK(prog.insns[4].imm == 9 - 5);
    CHECK(prog.insns[5].src == 4);
    CHECK(prog.insns[5].imm == 12 - 6);
    CHECK(prog.insns[10].imm == 12 - 11);
    REQUIRE(prog.fixups.size() == 2);
    CHECK(prog.fixups[1].kind == Fixup::Kind::map_value);
    CHECK(prog.fixups[1].offset == 8);
    CHECK(prog.insns[3].imm == 8);
}

TEST_CASE("unit: the verifier will quote its lines") {
    auto spec = object_of(sample_unit());
    REQUIRE(spec);
    const ProgramSpec &prog = spec->programs[0];
    auto types = btf::Btf::parse(spec->btf, "x");
    REQUIRE(types);
    REQUIRE(prog.func_info.size() == 3);
    CHECK(types->type(prog.func_info[0].type)->name == "prog");
    CHECK(types->type(prog.func_info[0].type)->vlen == 1); // global
    CHECK(types->type(prog.func_info[2].type)->name == "callback");
    CHECK(types->type(prog.func_info[2].type)->vlen == 0); // static, or it couldn't be a callback
    REQUIRE(prog.line_info.size() == 4);                   // the one inside an ld_imm64 is gone
    CHECK(prog.line_info[1].insn == 2);
    CHECK(prog.line_info[2].insn == 9); // walk's first line counts from its start
    CHECK(prog.line_info[3].insn == 12);
    CHECK(*types->string(prog.line_info[1].line) == "call(walk)");
    CHECK(*types->string(prog.line_info[1].file) == "twin.cpp");
    CHECK(prog.line_info[1].number_column == (11 << 10 | 5));
}

TEST_CASE("unit: a global function says what it takes, so that it is verified once") {
    Unit unit = sample_unit();
    unit.functions[0].global = true;
    unit.functions[0].arguments = 2;
    auto spec = object_of(unit);
    REQUIRE(spec);
    auto types = btf::Btf::parse(spec->btf, "x");
    REQUIRE(types);
    const ProgramSpec &prog = spec->programs[0];
    REQUIRE(prog.func_info.size() == 3);
    const auto walk = types->type(prog.func_info[1].type);
    REQUIRE(walk);
    CHECK(walk->name == "walk");
    CHECK(walk->vlen == 1); // global
    const auto proto = types->type(walk->size_or_type);
    REQUIRE(proto);
    REQUIRE(proto->vlen == 2);
    CHECK(types->type(types->param(*proto, 1)->type)->name == "u64");
    CHECK(types->type(types->type(prog.func_info[2].type)->size_or_type)->vlen == 0);
}

TEST_CASE("unit: a global function says how many bytes its first argument is the address of") {
    Unit unit = sample_unit();
    unit.functions[0].global = true;
    unit.functions[0].arguments = 2;
    unit.functions[0].pointed = 24;
    auto spec = object_of(unit);
    REQUIRE(spec);
    auto types = btf::Btf::parse(spec->btf, "x");
    REQUIRE(types);
    const auto proto = types->type(types->type(spec->programs[0].func_info[1].type)->size_or_type);
    REQUIRE(proto);
    REQUIRE(proto->vlen == 2);
    const auto pointer = types->type(types->param(*proto, 0)->type);
    REQUIRE(pointer);
    CHECK(pointer->kind == btf::Kind::ptr);
    CHECK(types->type(pointer->size_or_type)->kind == btf::Kind::array);
    CHECK(types->size_of(pointer->size_or_type).value() == 24);
    CHECK(types->type(types->param(*proto, 1)->type)->name == "u64");
}

TEST_CASE("unit: fields are found by name in the target") {
    btf::Writer writer;
    const auto i32 = writer.add_int("int", 4, true);
    const auto numbers = writer.add_array(i32, i32, 4);
    const auto mm = writer.add_struct("mm", 24, {{"users", i32, 64}, {"numbers", numbers, 96}});
    const auto hidden = writer.add_struct("", 8, {{"pid", i32, 32}}, true);
    writer.add_struct("task", 64, {{"state", i32, 0}, {"", hidden, 64}, {"mm", writer.add_ptr(mm), 128}, {"bits", i32, 200, 3}});
    writer.add_typedef("task_t", writer.next_id() - 1);
    const std::vector<std::byte> bytes = writer.finish();
    const btf::Btf kernel = *btf::Btf::parse(bytes, "vmlinux");
    const btf::Btf *targets[] = {&kernel};

    auto offset = [&](std::string path, int64_t addend = 0) -> int {
        Unit unit = sample_unit();
        unit.functions[1].refs.back().symbol = std::move(path);
        unit.functions[1].refs.back().addend = addend;
        auto spec = object_of(unit);
        REQUIRE(spec);
        CHECK(needs_core(*spec));
        if (auto report = relocate_core(*spec, targets); !report) return -2;
        const ProgramSpec &prog = spec->programs[0];
        if (prog.insns[7].code == 0x85) return -1;
        return prog.insns[7].off;
    };
    CHECK(offset("task.pid") == 12); // through the anonymous union
    CHECK(offset("task.pid", 2) == 14);
    CHECK(offset("task.mm") == 16);
    CHECK(offset("task.mm.users") == 8); // counted from where mm points
    CHECK(offset("task.mm.numbers[2]") == 12 + 8);
    CHECK(offset("task.mm.numbers[4]") == -1);
    CHECK(offset("task.nothing") == -1);
    CHECK(offset("nothing.pid") == -1);
    CHECK(offset("task.bits") == -1);
    CHECK(offset("task.state", 40000) == -1);
    CHECK(offset("task") == -2);
    CHECK(offset("task..pid") == -2);
    CHECK(offset("task.mm.numbers[x]") == -2);

    Unit unit = sample_unit();
    unit.functions[1].refs.back().symbol = "task.mm.owner";
    auto spec = object_of(unit);
    REQUIRE(spec);
    auto report = relocate_core(*spec, targets, {.details = true});
    REQUIRE(report);
    CHECK(report->poisoned == 1);
    CHECK(spec->programs[0].poisoned.at(0).insn == 7);
    CHECK(spec->programs[0].poisoned.at(0).why == "struct mm has no field owner");
}

TEST_CASE("unit: kernel functions and variables become externs, each once") {
    Unit unit;
    unit.name = "u";
    unit.functions.push_back(
        {"prog",
         "syscall",
         {kCall, kCall, wide(1), {}, kExit},
         {{0, RefKind::kfunc, "bpf_kfunc", 0}, {1, RefKind::kfunc, "bpf_kfunc", 0}, {2, RefKind::ksym, "jiffies", 0}},
         {},
         {}});
    auto spec = object_of(unit);
    REQUIRE(spec);
    CHECK(spec->externs.size() == 2);
    CHECK(spec->programs[0].fixups[1].symbol == "bpf_kfunc");
    CHECK(unsigned(spec->programs[0].insns[0].src) == 2);
    CHECK(spec->programs[0].fixups[2].kind == Fixup::Kind::ksym);
}

TEST_CASE("unit: references into nowhere are named") {
    Unit unit = sample_unit();
    unit.functions[1].refs[0].symbol = "count";
    auto spec = object_of(unit);
    REQUIRE(!spec);
    CHECK(spec.error().kind == Errc::invalid_argument);
    CHECK(spec.error().context == "twin: function prog: instruction 0: there is no map called count");
    unit = sample_unit();
    unit.functions[1].refs[2].insn = 99;
    CHECK(!object_of(unit));
    unit = sample_unit();
    unit.functions[1].refs[2].insn = 0; // a call where a load is
    unit.functions[1].refs.erase(unit.functions[1].refs.begin());
    CHECK(!object_of(unit));
    unit = sample_unit();
    unit.maps.push_back(unit.maps[0]);
    CHECK(!object_of(unit));
    unit = sample_unit();
    unit.functions.push_back(unit.functions[0]);
    CHECK(!object_of(unit));
}

TEST_CASE("unit: keys, values and variables have the types that the source gives them") {
    const Assembled source = assemble(".struct pair\n a u32\n b u64\n.end\n"
                                      ".map typed hash key u32 value pair entries 16\n"
                                      ".map sizes hash key 4 value pair entries 16\n"
                                      ".data limit u64 = 10\n"
                                      ".program p \"socket\"\n r0 = 0\n r1 = limit ll\n exit\n");
    REQUIRE(source);
    Result<ObjectSpec> spec = object_of(source.unit);
    REQUIRE(spec);
    const Result<btf::Btf> types = btf::Btf::parse(spec->btf, "unit");
    REQUIRE(types);
    const MapSpec *typed = spec->find_map("typed"), *sizes = spec->find_map("sizes");
    REQUIRE(typed);
    REQUIRE(sizes);
    CHECK(types->type(typed->key_type)->name == "unsigned int");
    CHECK(types->type(typed->value_type)->name == "pair");
    CHECK(*types->size_of(typed->value_type) == 16);
    CHECK(sizes->key_type == 0); // the kernel takes both types or none
    CHECK(sizes->value_type == 0);
    CHECK(spec->find_variable("limit").bytes.size() == 8);
    CHECK(spec->find_variable("limit").bytes[0] == std::byte{10});
}
