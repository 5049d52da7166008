// CO-RE on hand-made types: every kind, flavours, candidates that disagree, bitfields, poison, and broken input.
#include "runtime/object/core.h"

#include "tests/support/test.h"

using namespace rawbpf;
using btf::TypeId;
using btf::Writer;

namespace {

Insn mov(int32_t imm) { return {0xb7, 1, 0, 0, imm}; }
Insn load_w(int16_t off) { return {0x61, 1, 2, off, 0}; }
Insn load_dw(int16_t off) { return {0x79, 1, 2, off, 0}; }
constexpr Insn kPoison = {0x85, 0, 0, 0, kPoisonHelper};

/// BTF that owns its bytes.
struct Types {
    std::vector<std::byte> bytes;
    btf::Btf btf;
    Types(const Writer &writer, std::string_view name) : bytes(writer.finish()), btf(*btf::Btf::parse(bytes, name)) {}
};

/// One relocation of one program.
struct Case {
    ObjectSpec spec;
    Case(const Writer &local, std::vector<Insn> insns, TypeId type, std::string_view access, CoreKind kind) {
        spec.name = "x.o";
        spec.btf = local.finish();
        ProgramSpec program;
        program.name = "prog";
        program.insns = std::move(insns);
        program.core_relocations.push_back({0, type, std::string(access), static_cast<uint32_t>(kind)});
        spec.programs.push_back(std::move(program));
    }
    Result<CoreReport> run(const Types &target) {
        const btf::Btf *list[] = {&target.btf};
        return relocate_core(spec, list, {.details = true});
    }
    const Insn &insn(size_t i = 0) const { return spec.programs[0].insns[i]; }
    const std::string &why() const { return spec.programs[0].poisoned.at(0).why; }
};

/// struct task { int pid; u8 flags:3, mode:5; struct { long start; }; char comm[16]; struct task *next; unsigned wide; }
struct Local : Writer {
    TypeId i32 = add_int("int", 4, true), u32 = add_int("unsigned int", 4, false), u8 = add_int("unsigned char", 1, false);
    TypeId i64 = add_int("long", 8, true);
    TypeId comm = add_array(u8, u32, 16);
    TypeId hidden = add_struct("", 8, {{"start", i64, 0}});
    TypeId task = add_struct("task", 56,
                             {{"pid", i32, 0},
                              {"flags", u32, 32, 3},
                              {"mode", u32, 35, 5},
                              {"", hidden, 64},
                              {"comm", comm, 128},
                              {"next", next_id() + 1, 256},
                              {"wide", u32, 320},
                              {"gone", i32, 352}});
    TypeId next = add_ptr(task);
    TypeId state = add_enum("state", 4, {{"RUNNING", 0}, {"DEAD", 7}, {"LOST", 9}});
    TypeId number = add_typedef("number_t", i32);
    TypeId only_here = add_struct("only_here", 4, {{"x", i32, 0}});
};

/// The same further on: other offsets, another bitfield layout, start not hidden, wide widened, gone gone.
struct Target : Writer {
    TypeId i32 = add_int("int", 4, true), u32 = add_int("unsigned int", 4, false), u8 = add_int("unsigned char", 1, false);
    TypeId i64 = add_int("long", 8, true), u64 = add_int("unsigned long", 8, false);
    TypeId comm = add_array(u8, u32, 8);
    TypeId inner = add_struct("", 16, {{"x", i64, 0}, {"pid", i32, 64}}, true);
    TypeId task = add_struct("task", 96,
                             {{"start", i64, 0},
                              {"", inner, 64},
                              {"flags", u32, 222, 3},
                              {"mode", i32, 225, 5},
                              {"comm", comm, 256},
                              {"next", next_id() + 1, 320},
                              {"wide", u64, 384}});
    TypeId next = add_ptr(task);
    TypeId state = add_enum("state", 4, {{"DEAD", 70}, {"RUNNING", 1}});
    TypeId number = add_typedef("number_t", i64);
};

} // namespace

TEST_CASE("core: byte_off, into every kind of instruction") {
    Types target(Target(), "vmlinux");
    Case arithmetic(Local(), {mov(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    auto report = arithmetic.run(target);
    REQUIRE(report);
    CHECK(arithmetic.insn() == mov(16)); // pid, in an anonymous union at 8, at 8 there
    REQUIRE(report->outcomes.size() == 1);
    CHECK(report->outcomes[0].what == "struct task.pid");
    CHECK(report->outcomes[0].before == 0);
    CHECK(report->outcomes[0].after == 16);
    CHECK(report->outcomes[0].candidates.at(0).fits);

    Case loaded(Local(), {load_w(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(loaded.run(target));
    CHECK(loaded.insn() == load_w(16));

    Case out_of_anonymous(Local(), {load_dw(8)}, Local().task, "0:3:0", CoreKind::field_byte_offset);
    REQUIRE(out_of_anonymous.run(target));
    CHECK(out_of_anonymous.insn() == load_dw(0));

    Case stored(Local(), {{0x62, 2, 0, 0, 5}}, Local().task, "0:0", CoreKind::field_byte_offset); // *(u32 *)(r2 + 0) = 5
    REQUIRE(stored.run(target));
    CHECK(stored.insn() == Insn{0x62, 2, 0, 16, 5});

    Case wide(Local(), {{0x18, 1, 0, 0, 0}, {}}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(wide.run(target));
    CHECK(wide.insn() == Insn{0x18, 1, 0, 0, 16});

    Case element(Local(), {mov(56 + 16 + 3)}, Local().task, "1:4:3", CoreKind::field_byte_offset); // task[1].comm[3]
    REQUIRE(element.run(target));
    CHECK(element.insn() == mov(96 + 32 + 3));
}

TEST_CASE("core: sizes, existence, signedness") {
    Types target(Target(), "vmlinux");
    struct Row {
        std::string_view access;
        CoreKind kind;
        int32_t before, after;
    };
    const Row rows[] = {
        {"0:4", CoreKind::field_byte_size, 16, 8}, {"0:6", CoreKind::field_byte_size, 4, 8},
        {"0:0", CoreKind::field_exists, 1, 1},     {"0:7", CoreKind::field_exists, 1, 0},
        {"0:0", CoreKind::field_signed, 1, 1},     {"0:2", CoreKind::field_signed, 0, 1},
        {"0:4:8", CoreKind::field_exists, 1, 0}, // the array is shorter
        {"0:4:7", CoreKind::field_exists, 1, 1},
    };
    for (const Row &row : rows) {
        CAPTURE(row.access);
        Case one(Local(), {mov(row.before)}, Local().task, row.access, row.kind);
        auto report = one.run(target);
        REQUIRE(report);
        CHECK(one.insn() == mov(row.after));
        CHECK(report->poisoned == 0);
    }
}

TEST_CASE("core: a bitfield's load covers it, and the shifts isolate it") {
    Types target(Target(), "vmlinux"); // flags: bits 222..224 of the struct: across two u32, so an u64 at 24 is loaded
    auto number = [&](CoreKind kind, int32_t before) {
        Case one(Local(), {mov(before)}, Local().task, "0:1", kind);
        REQUIRE(one.run(target));
        return one.insn().imm;
    };
    const int32_t offset = number(CoreKind::field_byte_offset, 4), size = number(CoreKind::field_byte_size, 4);
    const int32_t left = number(CoreKind::field_lshift, 61), right = number(CoreKind::field_rshift, 61);
    CHECK(offset == 24);
    CHECK(size == 8);
    CHECK(left == 31);
    CHECK(right == 61);
    // What such a program computes:
    std::vector<std::byte> memory(96, std::byte{0});
    memory[27] = std::byte{0x40}; // bit 222
    memory[28] = std::byte{0x01}; // bit 224
    const uint64_t isolated = load<uint64_t>(memory.data() + offset) << left >> right;
    CHECK(isolated == 0b101);
}

TEST_CASE("core: types: ids, size, existence, match") {
    Types target(Target(), "vmlinux");
    auto number = [&](TypeId type, CoreKind kind, int32_t before) {
        Case one(Local(), {mov(before)}, type, "0", kind);
        REQUIRE(one.run(target));
        return one.insn().imm;
    };
    const Local local;
    const Target there;
    CHECK(number(local.task, CoreKind::type_id_local, 1234) == int32_t(local.task)); // linkers leave wrong numbers behind
    CHECK(number(local.task, CoreKind::type_id_target, 1234) == int32_t(there.task));
    CHECK(number(local.only_here, CoreKind::type_id_target, 1234) == 0);
    CHECK(number(local.task, CoreKind::type_size, 56) == 96);
    CHECK(number(local.only_here, CoreKind::type_size, 4) == 0);
    CHECK(number(local.task, CoreKind::type_exists, 1) == 1);
    CHECK(number(local.only_here, CoreKind::type_exists, 1) == 0);
    CHECK(number(local.number, CoreKind::type_exists, 1) == 1);  // ints are compatible whatever their size ...
    CHECK(number(local.number, CoreKind::type_matches, 1) == 0); // ... but don't match
    CHECK(number(local.task, CoreKind::type_matches, 1) == 0);
}

TEST_CASE("core: enum values, in 32 and 64 bits") {
    Types target(Target(), "vmlinux");
    const Local local;
    Case exists(local, {mov(1)}, local.state, "1", CoreKind::enum_value_exists);
    REQUIRE(exists.run(target));
    CHECK(exists.insn() == mov(1));
    Case missing(local, {mov(1)}, local.state, "2", CoreKind::enum_value_exists);
    REQUIRE(missing.run(target));
    CHECK(missing.insn() == mov(0));
    Case value(local, {{0x18, 1, 0, 0, 7}, {}}, local.state, "1", CoreKind::enum_value);
    REQUIRE(value.run(target));
    CHECK(value.insn() == Insn{0x18, 1, 0, 0, 70});
    Case lost(local, {{0x18, 1, 0, 0, 9}, {}, mov(3)}, local.state, "2", CoreKind::enum_value);
    REQUIRE(lost.run(target));
    CHECK(lost.insn(0) == kPoison);
    CHECK(lost.insn(1) == kPoison);
    CHECK(lost.insn(2) == mov(3));
    CHECK(lost.why() == "enum state has no value LOST");

    // A newer kernel made it 64 bits wide: raw, as the writer has no ENUM64.
    Writer wide;
    const uint32_t words[] = {wide.string("DEAD"), 0x89abcdef, 0x1234567};
    const uint32_t name = wide.string("state");
    wide.add_raw(name, 19u << 24 | 1, 8, std::as_bytes(std::span(words)));
    Types newer(wide, "vmlinux");
    Case in_64(local, {{0x18, 1, 0, 0, 7}, {}}, local.state, "1", CoreKind::enum_value);
    REQUIRE(in_64.run(newer));
    CHECK(in_64.insn(0).imm == int32_t(0x89abcdef));
    CHECK(in_64.insn(1).imm == 0x1234567);

    Writer negative;
    const TypeId sign = negative.add_enum("state", 4, {{"DEAD", -1}});
    for (int32_t upper : {0, -1}) { // compilers have widened it both ways
        Case widened(negative, {{0x18, 1, 0, 0, -1}, {0, 0, 0, 0, upper}}, sign, "0", CoreKind::enum_value);
        REQUIRE(widened.run(target));
        CHECK(widened.insn(0).imm == 70);
    }
}

TEST_CASE("core: a field that isn't there poisons, and says which") {
    Types target(Target(), "vmlinux");
    Case gone(Local(), {load_w(44)}, Local().task, "0:7", CoreKind::field_byte_offset);
    auto report = gone.run(target);
    REQUIRE(report);
    CHECK(gone.insn() == kPoison);
    CHECK(gone.why() == "struct task has no field gone");
    CHECK(report->poisoned == 1);
    CHECK(report->outcomes[0].poisoned);
    CHECK(!report->outcomes[0].candidates.at(0).fits);

    Case unknown(Local(), {load_w(0)}, Local().only_here, "0:0", CoreKind::field_byte_offset);
    REQUIRE(unknown.run(target));
    CHECK(unknown.insn() == kPoison);
    CHECK(unknown.why() == "struct only_here is unknown to this kernel");

    Case shorter(Local(), {mov(16 + 8)}, Local().task, "0:4:8", CoreKind::field_byte_offset);
    REQUIRE(shorter.run(target));
    CHECK(shorter.why() == "the array has 8 elements, so it has no element 8");

    // the same name, but a struct where a number was
    Writer other;
    const TypeId inner = other.add_struct("pid", 4, {});
    other.add_struct("task", 4, {{"pid", inner, 0}});
    Types incompatible(other, "vmlinux");
    Case changed(Local(), {load_w(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(changed.run(incompatible));
    CHECK(changed.why() == "struct task has a field pid, but of an incompatible type");
}

TEST_CASE("core: a load follows the size of an unsigned field or a pointer, and only of those") {
    Types target(Target(), "vmlinux");
    Case wide(Local(), {load_w(40)}, Local().task, "0:6", CoreKind::field_byte_offset);
    REQUIRE(wide.run(target));
    CHECK(wide.insn() == load_dw(48));

    Writer grown;
    grown.add_struct("task", 8, {{"pid", grown.add_int("long", 8, true), 0}});
    Types larger(grown, "vmlinux");
    Case is_signed(Local(), {load_w(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(is_signed.run(larger));
    CHECK(is_signed.insn() == kPoison);
    CHECK(is_signed.why() == "the field has 8 bytes here and 4 in the object, and not both are pointers or unsigned integers");
    Case computed(Local(), {mov(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(computed.run(larger)); // only the offset is taken: no load to go wrong
    CHECK(computed.insn() == mov(0));

    Case inconsistent(Local(), {load_dw(40)}, Local().task, "0:6", CoreKind::field_byte_offset);
    auto report = inconsistent.run(target);
    REQUIRE(!report);
    CHECK(report.error().kind == Errc::bad_input);
    CHECK(report.error().context ==
          "x.o: program prog: instruction 0: CO-RE byte_off of struct task.wide: it accesses 8 bytes, and the field has 4");
}

TEST_CASE("core: the instruction must hold what the object's own types say") {
    Types target(Target(), "vmlinux");
    Case wrong(Local(), {mov(3)}, Local().task, "0:0", CoreKind::field_byte_offset);
    auto report = wrong.run(target);
    REQUIRE(!report);
    CHECK(report.error().kind == Errc::bad_input);
    CHECK(report.error().context == "x.o: program prog: instruction 0: CO-RE byte_off of struct task.pid: it holds 3, but by the "
                                    "object's own types it must hold 0");
    Case jump(Local(), {{0x05, 0, 0, 0, 0}}, Local().task, "0:0", CoreKind::field_byte_offset);
    CHECK(!jump.run(target));
    Case half(Local(), {{0x18, 1, 0, 0, 0}}, Local().task, "0:0", CoreKind::field_byte_offset); // cut off
    CHECK(!half.run(target));
}

TEST_CASE("core: flavours on both sides stand for the same type") {
    Writer local;
    const TypeId i32 = local.add_int("int", 4, true);
    const TypeId old = local.add_struct("task___old", 4, {{"pid", i32, 0}});
    Writer there;
    const TypeId number = there.add_int("int", 4, true);
    there.add_struct("task___2", 8, {{"state", number, 0}, {"pid", number, 32}});
    there.add_struct("taskset", 4, {{"pid", number, 0}}); // another type altogether
    Types target(there, "vmlinux");
    Case one(local, {load_w(0)}, old, "0:0", CoreKind::field_byte_offset);
    auto report = one.run(target);
    REQUIRE(report);
    CHECK(one.insn() == load_w(4));
    REQUIRE(report->outcomes[0].candidates.size() == 1);
    CHECK(report->outcomes[0].candidates[0].name == "task___2");
}

TEST_CASE("core: candidates that disagree are refused and listed; those that agree are one") {
    Writer local;
    const TypeId i32 = local.add_int("int", 4, true);
    const TypeId task = local.add_struct("task", 8, {{"pid", i32, 0}, {"id", i32, 32}});
    Writer there;
    const TypeId number = there.add_int("int", 4, true);
    there.add_struct("task", 16, {{"pid", number, 32}, {"id", number, 64}, {"more", number, 0}});
    there.add_struct("task", 8, {{"pid", number, 32}, {"id", number, 0}});
    Types target(there, "vmlinux");
    Case agree(local, {load_w(0)}, task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(agree.run(target));
    CHECK(agree.insn() == load_w(4));
    Case disagree(local, {load_w(4)}, task, "0:1", CoreKind::field_byte_offset);
    auto report = disagree.run(target);
    REQUIRE(!report);
    CHECK(report.error().kind == Errc::unsupported);
    CHECK(report.error().context ==
          "x.o: program prog: instruction 0: CO-RE byte_off: struct task.id: the target's types disagree: [2] task in vmlinux "
          "gives 8; [3] task in vmlinux gives 0");
}

TEST_CASE("core: a candidate that failed once is out of the game, as in libbpf") {
    Writer local;
    const TypeId i32 = local.add_int("int", 4, true);
    const TypeId task = local.add_struct("task", 8, {{"pid", i32, 0}, {"id", i32, 32}});
    Writer there;
    const TypeId number = there.add_int("int", 4, true);
    there.add_struct("task", 4, {{"id", number, 0}}); // a stub with a field of the same name elsewhere
    there.add_struct("task", 12, {{"pid", number, 32}, {"id", number, 64}});
    Types target(there, "vmlinux");
    Case one(local, {load_w(0), load_w(4)}, task, "0:0", CoreKind::field_byte_offset);
    one.spec.programs[0].core_relocations.push_back({1, task, "0:1", 0});
    REQUIRE(one.run(target));
    CHECK(one.insn(0) == load_w(4));
    CHECK(one.insn(1) == load_w(8));
}

TEST_CASE("core: modules are looked at only for what the kernel doesn't have, and only then asked for") {
    Writer local;
    const TypeId i32 = local.add_int("int", 4, true);
    const TypeId conn = local.add_struct("nf_conn", 4, {{"mark", i32, 0}});
    Types kernel(Target(), "vmlinux");
    Writer split(kernel.btf);
    split.add_struct("nf_conn", 8, {{"status", 1, 0}, {"mark", 1, 32}});
    const std::vector<std::byte> module_bytes = split.finish();
    const btf::Btf module = *btf::Btf::parse(module_bytes, "nf_conntrack", &kernel.btf);

    struct Asked {
        const btf::Btf *list[2];
        int times = 0;
    } asked{{nullptr, &module}};
    CoreTargets targets;
    targets.kernel = &kernel.btf;
    targets.context = &asked;
    targets.modules = [](void *context) {
        auto *a = static_cast<Asked *>(context);
        ++a->times;
        return std::span<const btf::Btf *const>(a->list);
    };
    Case in_kernel(Local(), {load_w(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    REQUIRE(relocate_core(in_kernel.spec, targets));
    CHECK(asked.times == 0);
    Case in_module(local, {load_w(0), load_w(0)}, conn, "0:0", CoreKind::field_byte_offset);
    in_module.spec.programs[0].core_relocations.push_back({1, conn, "0:0", 0});
    REQUIRE(relocate_core(in_module.spec, targets));
    CHECK(in_module.insn(1) == load_w(4));
    CHECK(asked.times == 1);
}

TEST_CASE("core: flexible arrays have no bounds") {
    Writer local;
    const TypeId i32 = local.add_int("int", 4, true), u32 = local.add_int("unsigned int", 4, false);
    const TypeId list = local.add_struct("list", 4, {{"n", u32, 0}, {"items", local.add_array(i32, u32, 0), 32}});
    Writer there;
    const TypeId number = there.add_int("int", 4, true);
    there.add_struct("list", 8, {{"n", number, 0}, {"more", number, 32}, {"items", there.add_array(number, number, 0), 64}});
    Types target(there, "vmlinux");
    Case one(local, {mov(4 + 5 * 4)}, list, "0:1:5", CoreKind::field_byte_offset);
    REQUIRE(one.run(target));
    CHECK(one.insn() == mov(8 + 5 * 4));
}

TEST_CASE("core: access strings are checked") {
    Types target(Target(), "vmlinux");
    std::string deep = "0";
    for (int i = 0; i < 64; ++i) deep += ":0";
    for (const std::string &access :
         {std::string(), std::string(":"), std::string("0:"), std::string("0::1"), std::string("-1"), std::string("0:99"),
          std::string("0:0:0"), std::string("x"), std::string("0:4294967296"), std::string("0:4:16"), deep}) {
        CAPTURE(access);
        Case one(Local(), {mov(0)}, Local().task, access, CoreKind::field_byte_offset);
        auto report = one.run(target);
        REQUIRE(!report);
        CHECK(report.error().kind == Errc::bad_input);
    }
    Case kind(Local(), {mov(0)}, Local().task, "0:0", CoreKind(13));
    CHECK(!kind.run(target));
    Case type(Local(), {mov(0)}, 9999, "0:0", CoreKind::field_byte_offset);
    CHECK(!type.run(target));
    Case far(Local(), {mov(0)}, Local().task, "2147483647", CoreKind::field_byte_offset); // 112 GiB on
    CHECK(!far.run(target));
}

TEST_CASE("core: no target is an error only where one is needed") {
    Case needs(Local(), {mov(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    CHECK(needs_core(needs.spec));
    auto report = relocate_core(needs.spec, CoreTargets());
    REQUIRE(!report);
    CHECK(report.error().kind == Errc::unsupported);
    Case local_only(Local(), {mov(0)}, Local().task, "0", CoreKind::type_id_local);
    CHECK(!needs_core(local_only.spec));
    CHECK(relocate_core(local_only.spec, CoreTargets()));
    needs.spec.programs[0].autoload = false;
    CHECK(relocate_core(needs.spec, CoreTargets())); // it isn't loaded, so it isn't touched
    CHECK(needs.insn() == mov(0));
}

TEST_CASE("core: anonymous members nested without end are given up on") {
    Writer there;
    const TypeId i32 = there.add_int("int", 4, true);
    TypeId inner = there.add_struct("", 4, {{"x", i32, 0}}, true);
    for (int i = 0; i < 40; ++i) inner = there.add_struct("", 4, {{"", inner, 0}, {"", inner, 0}}, true);
    there.add_struct("task", 4, {{"", inner, 0}});
    Types target(there, "vmlinux");
    Case one(Local(), {mov(0)}, Local().task, "0:0", CoreKind::field_byte_offset);
    auto report = one.run(target);
    REQUIRE(!report);
    CHECK(report.error().kind == Errc::bad_input);
}
