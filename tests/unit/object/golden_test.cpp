// Objects as compilers emit them: golden/golden.bpf.c by clang 14 and clang 19.
#include <algorithm>

#include "asm/kinds.h"
#include "runtime/object/core.h"
#include "runtime/object/elf_object.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19, golden_jumps;
}
using namespace rawbpf;

namespace {

std::vector<std::string> names(const ProgramSpec &program) {
    std::vector<std::string> out;
    for (const auto &part : program.subprograms) out.push_back(part.name);
    return out;
}

/// A kernel in which everything has moved.
std::vector<std::byte> other_kernel() {
    btf::Writer w;
    const auto i32 = w.add_int("int", 4, true), u32 = w.add_int("unsigned int", 4, false);
    const auto u64 = w.add_int("unsigned long", 8, false), c = w.add_int("char", 1, true);
    const auto mm = w.add_struct("mm_struct", 800, {{"pad", u64, 0}, {"total_vm", u64, 768 * 8}});
    w.add_struct("task_struct", 4000,
                 {{"__state", u32, 24 * 8},
                  {"pid", i32, 1000 * 8},
                  {"mm", w.add_ptr(mm), 1008 * 8},
                  {"in_execve", u32, 1200 * 8 + 5, 1},
                  {"group_leader", w.add_ptr(w.next_id() + 2), 1300 * 8},
                  {"comm", w.add_array(c, u32, 24), 1400 * 8}});
    w.add_enum("pid_type", 4, {{"PIDTYPE_PID", 0}, {"PIDTYPE_TGID", 3}});
    return w.finish();
}

} // namespace

TEST_CASE("golden: maps, globals, programs and their functions, whichever clang compiled it") {
    for (const auto &object : {golden_clang14, golden_clang19}) {
        auto spec = parse_object(object, "golden.bpf.o");
        REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message()));
        CHECK(spec->license == "GPL");
        REQUIRE(spec->find_map("counts"));
        CHECK(spec->find_map("counts")->value_size == 8);
        CHECK(load<int>(spec->find_global("seed").data()) == 5);
        CHECK(load<int>(spec->find_global("secret").data()) == 9);
        CHECK(load<int>(spec->find_global("limit").data()) == 7);
        CHECK(spec->find_map(".rodata")->freeze);
        REQUIRE(spec->programs.size() == 3);
        CHECK(names(spec->programs[0]) == std::vector<std::string>{"fields"});
        CHECK(names(spec->programs[1]) == std::vector<std::string>{"calls", "walk", "leaf", "each"});
        CHECK(names(spec->programs[2]) == std::vector<std::string>{"optional", "leaf"});
        CHECK(!spec->programs[2].autoload);
        for (const ProgramSpec &program : spec->programs) {
            CHECK(program.func_info.size() == program.subprograms.size());
            for (const auto &part : program.subprograms) {
                auto starts_here = [&](const auto &info) { return info.insn == part.insn; };
                CHECK(std::any_of(program.func_info.begin(), program.func_info.end(), starts_here));
                CHECK(std::any_of(program.line_info.begin(), program.line_info.end(), starts_here));
            }
        }
    }
}

TEST_CASE("golden: relocated for a kernel with other types") {
    const std::vector<std::byte> bytes = other_kernel();
    const btf::Btf kernel = *btf::Btf::parse(bytes, "vmlinux");
    const btf::Btf *targets[] = {&kernel};
    for (const auto &object : {golden_clang14, golden_clang19}) {
        auto spec = parse_object(object, "golden.bpf.o");
        REQUIRE(spec);
        auto report = relocate_core(*spec, targets, {.details = true});
        REQUIRE_MESSAGE(report.has_value(), (report ? "" : report.error().message()));
        CHECK(report->relocated + report->poisoned == spec->programs[0].core_relocations.size());
        auto after = [&](std::string_view what, CoreKind kind) -> int64_t {
            for (const CoreOutcome &outcome : report->outcomes)
                if (outcome.what == what && outcome.kind == static_cast<uint32_t>(kind))
                    return outcome.poisoned ? -1 : static_cast<int64_t>(outcome.after);
            return -2;
        };
        using K = CoreKind;
        CHECK(after("struct task_struct.__state", K::field_exists) == 1);
        CHECK(after("struct task_struct.__state", K::field_byte_offset) == 24);
        CHECK(after("struct task_struct___older.state", K::field_byte_offset) == -1);
        CHECK(after("struct task_struct.pid", K::field_byte_offset) == 1000);
        CHECK(after("struct task_struct.group_leader", K::field_byte_offset) == 1300);
        CHECK(after("struct task_struct.mm", K::field_byte_offset) == 1008);
        CHECK(after("struct mm_struct.total_vm", K::field_byte_offset) == 768);
        CHECK(after("struct task_struct.in_execve", K::field_byte_offset) == 1200);
        CHECK(after("struct task_struct.in_execve", K::field_byte_size) == 4);
        CHECK(after("struct task_struct.in_execve", K::field_lshift) == 64 - 6);
        CHECK(after("struct task_struct.in_execve", K::field_rshift) == 63);
        CHECK(after("struct task_struct.in_execve", K::field_signed) == 0);
        CHECK(after("struct task_struct.comm", K::field_byte_size) == 24);
        CHECK(after("struct task_struct", K::type_size) == 4000);
        CHECK(after("struct mm_struct", K::type_id_target) == *kernel.find("mm_struct"));
        CHECK(after("struct no_such_struct", K::type_exists) == 0);
        CHECK(after("struct no_such_struct.x", K::field_byte_offset) == -1);
        CHECK(after("enum pid_type::PIDTYPE_NO_SUCH", K::enum_value_exists) == 0);
        CHECK(after("enum pid_type::PIDTYPE_TGID", K::enum_value) == 3);
        for (const ProgramSpec::Poison &poison : spec->programs[0].poisoned) {
            CHECK(spec->programs[0].insns[poison.insn].imm == kPoisonHelper);
            CHECK(!poison.why.empty());
        }
    }
}

TEST_CASE("golden: cut anywhere, it is refused") {
    const std::span<const std::byte> whole = golden_clang14;
    size_t accepted = 0;
    for (size_t size = 0; size < whole.size(); ++size) {
        const std::vector<std::byte> cut(whole.begin(), whole.begin() + size);
        accepted += parse_object(cut, "cut.o").has_value();
    }
    CHECK(accepted == 0); // the section headers come last
}

TEST_CASE("golden: clang 22's jump tables, in the instructions of each program") {
    auto spec = parse_object(golden_jumps, "jumps.bpf.o");
    REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message()));
    REQUIRE(spec->programs.size() == 2);
    const ProgramSpec &first = spec->programs[0], &second = spec->programs[1];
    // llvm-objdump -dr shows places in bytes of the section: weigh is .text's first function, second starts at 0x28 of its own.
    CHECK(first.jump_tables == std::vector<std::vector<uint32_t>>{{12, 32, 22, 27, 17, 37}});
    CHECK(second.jump_tables == std::vector<std::vector<uint32_t>>{{12, 32, 22, 27, 17, 37, 42}, {56, 76, 66, 71, 61, 81}});
    for (const ProgramSpec &program : spec->programs) {
        size_t tables = 0;
        for (const Fixup &fixup : program.fixups) {
            if (fixup.kind != Fixup::Kind::jump_table) continue;
            CHECK(fixup.map == tables++);
            CHECK((program.insns[fixup.insn].src == 2)); // BPF_PSEUDO_MAP_VALUE
            CHECK(program.insns[fixup.insn + 1].imm == 0);
        }
        CHECK(tables == program.jump_tables.size());
        CHECK(std::count_if(program.insns.begin(), program.insns.end(), [](const Insn &i) { return i.code == 0x0d; }) ==
              static_cast<std::ptrdiff_t>(tables)); // gotox
    }
}
