// Units as object files: what is read back from them is what the unit becomes directly.
#include "runtime/object/unit_elf.h"

#include <string>

#include "asm/assemble.h"
#include "asm/print.h"
#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/spec_unit.h"
#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

const char *kSource = R"(.license "GPL"
.struct event
    pid  u32
    name char[4]
.end
.map counts hash key u32 value event entries 1024 flags 1
.map events ringbuf entries 4096
.map stacks stack_trace key 4 value 1016 entries 10
.rodata greeting "hello"
.data total u64 = 1
.bss table u32[16]
.program p "kprobe/vfs_read"
    r1 = counts ll
    r1 = events ll
    r1 = greeting ll
    r1 = total ll
    r1 = table + 8 ll
    r2 = walk ll
    call walk
    r0 = 0
    exit
.program q "perf_event"
    call walk
    exit
.function walk
    r1 = stacks ll
    r0 = 0
    exit
)";

/// A kernel with a struct in which members aren't where their names' order would have them.
std::vector<std::byte> kernel_types(uint32_t shift) {
    btf::Writer w;
    const btf::TypeId i = w.add_int("int", 4, true), ptr = w.add_ptr(5);                                              // 1, 2
    const btf::TypeId sp = w.add_struct("thread_struct", 16, {{"flags", i, 0}, {"sp", i, 64}});                       // 3
    (void)w.add_struct("task_struct", 64, {{"mm", ptr, shift}, {"pid", i, 64 + shift}, {"thread", sp, 128 + shift}}); // 4
    (void)w.add_struct("mm_struct", 16, {{"users", i, 0}, {"pgd", i, 32 + shift}});                                   // 5
    return w.finish();
}

/// The unit as an object, and that as it is read; never an error.
Result<ObjectSpec> read_back(const Unit &unit, const btf::Btf *kernel) {
    auto object = write_object(unit, kernel);
    if (!object) FAIL(object.error().context);
    auto spec = parse_object(*object, "asm");
    if (!spec) FAIL(spec.error().context);
    return spec;
}

} // namespace

TEST_CASE("unit to ELF: read back, the programs are what the unit becomes directly") {
    const Assembled made = assemble(kSource);
    INFO(made.report());
    REQUIRE(made);
    auto spec = read_back(made.unit, nullptr);
    auto direct = object_of(made.unit);
    REQUIRE(direct);
    CHECK(spec->license == "GPL");
    REQUIRE(spec->programs.size() == 2);
    for (const ProgramSpec &program : spec->programs) {
        const ProgramSpec *other = direct->find_program(program.name);
        REQUIRE(other != nullptr);
        CHECK(program.section == other->section);
        CHECK(program.type == other->type);
        REQUIRE(program.insns.size() == other->insns.size());
        for (size_t i = 0; i < program.insns.size(); ++i) {
            INFO(program.name << " " << i << ": " << print(std::span(program.insns).subspan(i)));
            CHECK(program.insns[i] == other->insns[i]);
        }
        CHECK(program.func_info.size() == other->func_info.size());
        CHECK(program.line_info.size() == other->line_info.size());
        CHECK(program.line_info[0].number_column == other->line_info[0].number_column);
    }
    const MapSpec *counts = spec->find_map("counts");
    REQUIRE(counts != nullptr);
    CHECK(counts->key_size == 4);
    CHECK(counts->value_size == 8);
    CHECK(counts->max_entries == 1024);
    CHECK(counts->flags == 1);
    CHECK(counts->value_type != 0);
    CHECK(spec->find_map("stacks")->value_size == 1016);
    CHECK(spec->find_global("total").size() == 8);
    CHECK(spec->find_global("total")[0] == std::byte{1});
    CHECK(spec->find_global("greeting").size() == 6);

    auto unit = unit_of(*spec);
    REQUIRE(unit);
    const std::string listing = print(*unit);
    CHECK(listing.find("r1 = .bss + 8 ll") != std::string::npos);
    CHECK(listing.find("call walk") != std::string::npos);
    const Assembled again = assemble(listing);
    INFO(again.report());
    REQUIRE(again);
    CHECK(again.unit.functions.size() == 3);
}

TEST_CASE("unit to ELF: members of kernel structs are relocated from where they were to where they are") {
    const Assembled made = assemble("r6 = *(u32 *)(r1 + @task_struct.pid)\nr1 += @task_struct.mm\nr1 = *(u32 *)(r1 + "
                                    "@task_struct.mm.pgd)\nr2 = @task_struct.thread.sp\nexit\n");
    REQUIRE(made);
    const std::vector<std::byte> old_types = kernel_types(0), new_types = kernel_types(32);
    auto before = btf::Btf::parse(old_types, "before"), after = btf::Btf::parse(new_types, "after");
    REQUIRE(before);
    REQUIRE(after);
    auto spec = read_back(made.unit, &*before);
    const std::vector<Insn> &insns = spec->programs[0].insns;
    CHECK(insns[0].off == 8);
    CHECK(insns[1].imm == 0);
    CHECK(insns[2].off == 4);
    CHECK(insns[3].imm == 24);
    CHECK(spec->programs[0].core_relocations.size() == 4);
    CoreTargets targets;
    targets.kernel = &*after;
    auto report = relocate_core(*spec, targets);
    REQUIRE(report);
    CHECK(report->poisoned == 0);
    CHECK(insns[0].off == 12);
    CHECK(insns[1].imm == 4);
    CHECK(insns[2].off == 8);
    CHECK(insns[3].imm == 28);

    CHECK_FALSE(write_object(made.unit, nullptr));
    const Assembled wrong = assemble("r1 += @task_struct.nothing\nexit\n");
    auto refused = write_object(wrong.unit, &*before);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().context.find("no member nothing") != std::string::npos);
}

TEST_CASE("unit to ELF: kernel functions are declared with their prototypes, variables without") {
    btf::Writer w;
    const btf::TypeId i = w.add_int("int", 4, true);                                                              // 1
    const btf::TypeId task = w.add_struct("task_struct", 64, {{"pid", i, 0}});                                    // 2
    const btf::TypeId alias = w.add_typedef("task_t", task), constant = w.add_modifier(btf::Kind::const_, alias); // 3, 4
    const btf::TypeId ptr = w.add_ptr(constant), fwd = w.add_ptr(w.add_fwd("hidden"));                            // 5; 6, 7
    const btf::TypeId callback = w.add_ptr(w.add_func_proto(0, {{"", ptr}}));                                     // 8, 9
    (void)w.add_func("bpf_look", w.add_func_proto(ptr, {{"t", ptr}, {"", fwd}, {"f", callback}, {"n", i}}), 0);
    const std::vector<std::byte> bytes = w.finish();
    auto kernel = btf::Btf::parse(bytes, "kernel");
    REQUIRE(kernel);
    const Assembled made = assemble(".kfunc bpf_look\n.function other\ncall bpf_look\nexit\n.program p \"kprobe\"\n"
                                    "call kfunc bpf_look\nr1 = ksym jiffies ll\ncall other\nexit\n");
    INFO(made.report());
    REQUIRE(made);
    CHECK_FALSE(write_object(made.unit, nullptr));
    auto spec = read_back(made.unit, &*kernel);
    REQUIRE(spec->externs.size() == 2);
    const ProgramSpec &program = spec->programs[0];
    REQUIRE(program.fixups.size() == 3);
    CHECK(program.fixups[0].kind == Fixup::Kind::kfunc);
    CHECK(program.fixups[0].symbol == "bpf_look");
    CHECK(program.fixups[1].kind == Fixup::Kind::ksym);
    CHECK(program.fixups[1].symbol == "jiffies");
    CHECK(program.fixups[2].symbol == "bpf_look"); // of the function, which stands behind the program
    auto types = btf::Btf::parse(spec->btf, "asm");
    REQUIRE(types);
    auto function = types->type(program.fixups[0].type);
    REQUIRE(function);
    CHECK(function->name == "bpf_look");
    auto proto = types->type(function->size_or_type);
    REQUIRE(proto);
    REQUIRE(proto->vlen == 4);
    auto kinds = [&](btf::TypeId id) { // "ptr struct task_struct"
        std::string out;
        for (int depth = 0; depth < 5; ++depth) {
            auto type = types->resolve(id);
            if (!type) return std::string("broken");
            out += type->kind == btf::Kind::ptr          ? "ptr "
                   : type->kind == btf::Kind::struct_    ? "struct "
                   : type->kind == btf::Kind::fwd        ? "fwd "
                   : type->kind == btf::Kind::func_proto ? "proto"
                   : type->kind == btf::Kind::int_       ? "int "
                                                         : "void";
            if (type->kind != btf::Kind::ptr) return out + std::string(type->name);
            id = type->size_or_type;
        }
        return out;
    };
    CHECK(kinds(proto->size_or_type) == "ptr struct task_struct");
    CHECK(kinds(types->param(*proto, 0)->type) == "ptr struct task_struct");
    CHECK(kinds(types->param(*proto, 1)->type) == "ptr fwd hidden");
    CHECK(kinds(types->param(*proto, 2)->type) == "ptr proto");
    CHECK(kinds(types->param(*proto, 3)->type) == "int int");
    const Assembled wrong = assemble("call kfunc bpf_nobody\nexit\n");
    auto refused = write_object(wrong.unit, &*kernel);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().context.find("no function bpf_nobody") != std::string::npos);
}

namespace {

/// What the text of a spec becomes when it is assembled into an object again.
ObjectSpec again(const ObjectSpec &spec) {
    auto unit = unit_of(spec);
    REQUIRE(unit);
    const std::string listing = print(*unit);
    const Assembled made = assemble(listing);
    INFO(listing << made.report());
    REQUIRE(made);
    return std::move(*read_back(made.unit, nullptr));
}

ProgramSpec::Subprogram &part(ObjectSpec &spec, const char *program, size_t n) {
    for (ProgramSpec &one : spec.programs)
        if (one.name == program) return one.subprograms.at(n);
    FAIL("no such program");
    std::abort();
}

} // namespace

TEST_CASE("spec to text: functions of one name are told apart, in every program that calls them") {
    // Static functions of several files: some differ in their instructions, some only in what they refer to or call.
    const Assembled made = assemble(R"(.map counts hash key 4 value 8 entries 1
.map other hash key 4 value 8 entries 1
.program p "socket"
    call a
    call through_a
    call b
    call through_b
    call c
    exit
.program q "socket"
    call through_b
    call b
    call bpf_get_smp_processor_id
    exit
.program r "socket"
    call c
    call through_a
    exit
.program s "socket"
    call d
    call e
    exit
.function a
    r1 = counts ll
    r0 = 1
    exit
.function b
    r1 = other ll
    r0 = 1
    exit
.function c
    r0 = 2
    exit
.function through_a
    call a
    exit
.function through_b
    call b
    exit
.function d
    r0 = 7
    exit
.function e
    r0 = 7
    exit
)");
    INFO(made.report());
    REQUIRE(made);
    auto spec = object_of(made.unit);
    REQUIRE(spec);
    // Every function's name is made one that something else has: another function, a program, a map, a helper.
    for (const char *name : {"helper", "p", "counts", "bpf_get_smp_processor_id", "helper_2", "a-b"}) {
        INFO(name);
        for (ProgramSpec &program : spec->programs)
            for (size_t n = 1; n < program.subprograms.size(); ++n) program.subprograms[n].name = name;
        ObjectSpec read = again(*spec);
        REQUIRE(read.programs.size() == spec->programs.size());
        for (const ProgramSpec &program : spec->programs) {
            INFO(program.name);
            const ProgramSpec *twin = read.find_program(program.name);
            REQUIRE(twin != nullptr);
            CHECK(twin->insns == program.insns);
            REQUIRE(twin->fixups.size() == program.fixups.size());
            for (size_t i = 0; i < program.fixups.size(); ++i) {
                CHECK(twin->fixups[i].insn == program.fixups[i].insn);
                CHECK(read.maps[twin->fixups[i].map].name == spec->maps[program.fixups[i].map].name);
            }
        }
        auto unit = unit_of(*spec);
        REQUIRE(unit);
        CHECK(unit->functions.size() == 4 + 7); // each once, though three programs call it
    }
    // One that begins where another does has no instructions, nor has one at the end: nothing leads to them.
    ProgramSpec::Subprogram twice = part(*spec, "p", 1);
    for (ProgramSpec &program : spec->programs)
        if (program.name == "p") {
            program.subprograms.insert(program.subprograms.begin() + 1, twice);
            program.subprograms.push_back({static_cast<uint32_t>(program.insns.size()), "end"});
        }
    CHECK(again(*spec).find_program("p")->insns == spec->find_program("p")->insns);
}

TEST_CASE("unit to ELF: data sections of any name are read back") {
    for (const char *name : {".bss", ".bss.foo", ".data", ".data.foo", ".rodata", ".rodata.foo"}) {
        INFO(name);
        const std::string source = std::string(".map ") + name +
                                   " array key 4 value 8 entries 1\n.program p \"socket\"\n    r1 = " + name +
                                   " + 4 ll\n    r0 = 0\n    exit\n";
        const Assembled made = assemble(source);
        INFO(made.report());
        REQUIRE(made);
        auto spec = read_back(made.unit, nullptr);
        REQUIRE(spec->maps.size() == 1);
        CHECK(spec->maps[0].data_section == name);
        CHECK(spec->maps[0].value_size == 8);
        REQUIRE(spec->programs.size() == 1);
        CHECK(spec->programs[0].fixups.size() == 1);
    }
    const Assembled made = assemble(".map .bss.foo array key 4 value 1 entries 1 contents \"\\x01\"\n.program p \"socket\"\nr1 = "
                                    ".bss.foo + 0 ll\nr0 = 0\nexit\n");
    REQUIRE(made);
    CHECK(!write_object(made.unit, nullptr));
}
