// Linking: names, sections and types of several files brought together; contradictions named with both files; real objects.
#include "runtime/object/linker.h"

#include <elf.h>

#include <algorithm>

#include "runtime/base/format.h"
#include "runtime/btf/btf.h"
#include "runtime/elf/elf.h"
#include "runtime/elf/writer.h"
#include "runtime/object/elf_object.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"
#include "tests/unit/object/sample.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19, golden_jumps;
}
using namespace rawbpf;

namespace {

constexpr uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR, kData = SHF_ALLOC | SHF_WRITE;
constexpr Insn kExit{.code = 0x95};
constexpr Insn mov(int32_t imm) { return {.code = 0xb7, .imm = imm}; }
constexpr Insn call(int32_t imm) { return {.code = 0x85, .src = 1, .imm = imm}; }
constexpr Insn wide(int32_t imm) { return {.code = 0x18, .dst = 1, .imm = imm}; }

/// One object under construction.
struct Unit {
    elf::Writer elf;
    btf::Writer types;
    btf::TypeId i32 = types.add_int("int", 4, true), u64 = types.add_int("long", 8, true);
    btf::TypeId proto = types.add_func_proto(i32, {{"x", i32}});

    explicit Unit(std::string_view license = "GPL") {
        if (!license.empty()) (void)of_section(section("license", kData, std::string(license) + '\0')); // and so a symbol table
    }
    uint32_t section(std::string_view name, uint64_t flags, std::string_view bytes) {
        return elf.add_section(name, flags, bytes_of(bytes), 4);
    }
    uint32_t code(std::string_view name, const std::vector<Insn> &insns) {
        return elf.add_section(name, kCode, std::as_bytes(std::span(insns)));
    }
    uint32_t symbol(std::string_view name, uint32_t section, uint64_t value, uint64_t size, uint8_t type,
                    uint8_t binding = STB_GLOBAL, uint8_t visibility = STV_DEFAULT) {
        elf::Symbol s;
        s.name = name;
        s.section = section;
        s.value = value;
        s.size = size;
        s.type = type;
        s.binding = binding;
        s.visibility = visibility;
        return elf.add_symbol(s);
    }
    uint32_t of_section(uint32_t section) { return symbol("", section, 0, 0, STT_SECTION, STB_LOCAL); }
    void relocate(uint32_t in, uint64_t offset, uint32_t type, uint32_t symbol) {
        elf.add_relocation(in, {offset, type, symbol, 0});
    }
    std::vector<std::byte> finish(bool with_types = true) {
        if (with_types) elf.add_section(".BTF", 0, types.finish(), 4);
        return elf.finish();
    }
};

Result<std::vector<std::byte>> link(const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
    const LinkInput inputs[] = {{a, "a.o"}, {b, "b.o"}};
    return link_objects(inputs);
}
std::string problem(const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
    auto out = link(a, b);
    return out ? "linked" : out.error().message();
}

/// xdp/main calls the static `help` in .text and, when asked for, the global `twice` of another file.
Unit caller(bool outside = true) {
    Unit u;
    const uint32_t text = u.code(".text", {mov(7), kExit});
    const uint32_t xdp = u.code("xdp", {call(-1), call(-1), kExit});
    u.symbol("help", text, 0, 16, STT_FUNC, STB_LOCAL);
    u.symbol("main", xdp, 0, 24, STT_FUNC);
    u.relocate(xdp, 0, 10, u.of_section(text));
    const uint32_t target = outside ? u.symbol("twice", SHN_UNDEF, 0, 0, STT_NOTYPE) : u.of_section(text);
    u.relocate(xdp, 8, 10, target);
    u.types.add_func("main", u.proto, 1);
    if (outside) u.types.add_func("twice", u.proto, 2);
    return u;
}

/// .text with a static `inner` and `twice`, which calls it.
Unit callee(uint8_t binding = STB_GLOBAL, uint8_t visibility = STV_DEFAULT, int32_t number = 5) {
    Unit u;
    const uint32_t text = u.code(".text", {mov(number), kExit, call(-1), kExit});
    u.symbol("inner", text, 0, 16, STT_FUNC, STB_LOCAL);
    u.symbol("twice", text, 16, 16, STT_FUNC, binding, visibility);
    u.relocate(text, 16, 10, u.of_section(text));
    u.types.add_func("twice", u.proto, 1);
    return u;
}

} // namespace

TEST_CASE("link: functions of two files, static ones moved with their section") {
    auto object = link(caller().finish(), callee().finish());
    REQUIRE(object);
    auto spec = parse_object(*object, "out.o");
    REQUIRE(spec);
    CHECK(spec->license == "GPL");
    REQUIRE(spec->programs.size() == 1);
    const ProgramSpec &p = spec->programs[0];
    // main, help, twice, inner: calls aimed at what each file meant.
    std::vector<std::string> names;
    for (const auto &part : p.subprograms) names.push_back(part.name);
    CHECK(names == std::vector<std::string>{"main", "help", "twice", "inner"});
    REQUIRE(p.insns.size() == 9);
    CHECK(p.insns[p.subprograms[1].insn] == mov(7));
    CHECK(p.insns[p.subprograms[3].insn] == mov(5));
    const elf::Elf file = *elf::Elf::parse(*object, "out.o");
    CHECK(std::count_if(file.sections().begin(), file.sections().end(), [](const auto &s) { return s.name == "license"; }) == 1);
}

TEST_CASE("link: a strong definition wins over a weak one, the first weak one over the next") {
    auto number = [](const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
        const std::vector<std::byte> main = caller().finish();
        const LinkInput inputs[] = {{main, "main.o"}, {a, "a.o"}, {b, "b.o"}};
        auto object = link_objects(inputs);
        REQUIRE(object);
        auto spec = parse_object(*object, "out.o");
        REQUIRE(spec);
        const ProgramSpec &p = spec->programs[0];
        return p.insns[p.subprograms.back().insn].imm; // that of the `inner` that was reached
    };
    const auto weak = callee(STB_WEAK, STV_DEFAULT, 1).finish(), other = callee(STB_WEAK, STV_DEFAULT, 2).finish();
    const auto strong = callee(STB_GLOBAL, STV_DEFAULT, 3).finish();
    CHECK(number(weak, other) == 1);
    CHECK(number(weak, strong) == 3);
    CHECK(number(strong, other) == 3);
}

TEST_CASE("link: hidden stays hidden") {
    auto object = link(caller().finish(), callee(STB_GLOBAL, STV_HIDDEN).finish());
    REQUIRE(object);
    const elf::Elf file = *elf::Elf::parse(*object, "out.o");
    for (const elf::Section &s : file.sections())
        if (s.type == SHT_SYMTAB)
            for (size_t i = 0; i < file.symbol_count(s); ++i)
                if (auto symbol = file.symbol(s, i); symbol && symbol->name == "twice") CHECK(symbol->visibility == STV_HIDDEN);
}

TEST_CASE("link: variables keep their places, sections their alignment") {
    auto unit = [](std::string_view variable, std::string_view bytes) {
        Unit u;
        const uint32_t data = u.section(".data", kData, bytes);
        const uint32_t xdp = u.code(format("xdp/{}", variable), {wide(0), {}, kExit}); // the static one, at offset 0
        u.symbol(format("main_{}", variable), xdp, 0, 24, STT_FUNC);
        u.relocate(xdp, 0, 1, u.of_section(data));
        u.symbol(variable, data, 4, 4, STT_OBJECT);
        const auto fixed = u.types.add_var("fixed", u.i32, 0), global = u.types.add_var(variable, u.i32, 1);
        u.types.add_datasec(".data", 0, {{fixed, 0, 4}, {global, 0, 4}});
        return u.finish();
    };
    auto object =
        link(unit("one", std::string_view("\1\0\0\0\2\0\0\0\3", 9)), unit("two", std::string_view("\4\0\0\0\5\0\0\0", 8)));
    REQUIRE(object);
    auto spec = parse_object(*object, "out.o");
    REQUIRE(spec);
    const MapSpec *data = spec->find_map(".data");
    REQUIRE(data);
    CHECK(data->value_size == 20); // 9, up to 12, 8
    REQUIRE(spec->programs.size() == 2);
    CHECK(spec->programs[0].fixups.at(0).offset == 0);
    CHECK(spec->programs[1].fixups.at(0).offset == 12);
    CHECK(std::to_integer<int>(spec->find_global("one")[0]) == 2);
    CHECK(std::to_integer<int>(spec->find_global("two")[0]) == 5);
}

TEST_CASE("link: each type once, declarations become definitions") {
    auto unit = [](bool whole, std::string_view own) {
        Unit u("");
        auto &t = u.types;
        // struct node { struct node *next; struct other *o; }, in a circle
        const btf::TypeId node = t.next_id();
        t.add_struct("node", 16, {{"next", node + 1, 0}, {"o", node + 2, 64}});
        t.add_ptr(node);
        t.add_ptr(node + 3);
        whole ? t.add_struct("other", 4, {{"x", u.i32, 0}}) : t.add_fwd("other");
        const auto var = t.add_var(own, node, 1);
        const uint32_t bss = u.elf.add_nobits(".bss", kData, 16);
        u.symbol(own, bss, 0, 16, STT_OBJECT);
        t.add_datasec(".bss", 0, {{var, 0, 16}});
        return u.finish();
    };
    auto object = link(unit(false, "a"), unit(true, "b"));
    REQUIRE(object);
    const elf::Elf file = *elf::Elf::parse(*object, "out.o");
    auto types = btf::Btf::parse(file.contents(*file.find_section(".BTF")), "out.o");
    REQUIRE(types);
    CHECK(types->find_all("node").size() == 1);
    CHECK(types->find_all("other").size() == 1);
    CHECK(types->type(types->find_all("other")[0])->kind == btf::Kind::struct_);
    CHECK(types->find_all("int").size() == 1);
    const auto section = types->find(".bss", btf::Kind::datasec);
    REQUIRE(section);
    const btf::Type bss = *types->type(*section);
    REQUIRE(bss.vlen == 2);
    CHECK(bss.size_or_type == 32);
    CHECK(types->secinfo(bss, 1)->offset == 16);
}

TEST_CASE("link: contradictions name both files") {
    const auto one = callee().finish(), two = callee().finish();
    CHECK(problem(one, two) == "twice is defined in a.o and in b.o");
    Unit other("Dual BSD/GPL");
    CHECK(problem(one, other.finish()) == "a.o and b.o have different licenses: \"GPL\" and \"Dual BSD/GPL\"");

    Unit wrong; // `twice` as a variable
    const uint32_t data = wrong.section(".data", kData, std::string_view("\0\0\0\0", 4));
    wrong.symbol("twice", data, 0, 4, STT_OBJECT, STB_WEAK);
    CHECK(problem(one, wrong.finish(false)) == "twice is a function in a.o, and something else in b.o");

    Unit caller_of_another; // int twice(long)
    const uint32_t xdp = caller_of_another.code("xdp", {call(-1), kExit});
    caller_of_another.symbol("main", xdp, 0, 16, STT_FUNC);
    caller_of_another.relocate(xdp, 0, 10, caller_of_another.symbol("twice", SHN_UNDEF, 0, 0, STT_NOTYPE));
    auto &t = caller_of_another.types;
    t.add_func("twice", t.add_func_proto(caller_of_another.i32, {{"x", caller_of_another.u64}}), 2);
    const auto declares = caller_of_another.finish();
    auto out = link(declares, one);
    REQUIRE(!out);
    CHECK(out.error().message() == "a.o and b.o disagree about twice");
    CHECK(out.error().hint == "a.o: int (long x)\nb.o: int (int x)");

    Unit kernels; // extern int twice(int) __ksym
    kernels.symbol("twice", SHN_UNDEF, 0, 0, STT_NOTYPE);
    const auto func = kernels.types.add_func("twice", kernels.proto, 2);
    kernels.types.add_datasec(".ksyms", 0, {{func, 0, 0}});
    CHECK(problem(kernels.finish(), one) == "twice: a.o has it in section .ksyms, and b.o has it in .text");

    Unit kind;
    kind.code(".data", {kExit});
    Unit plain;
    plain.section(".data", kData, "x");
    CHECK(problem(plain.finish(), kind.finish()).starts_with("a.o and b.o: their sections .data are of different kinds"));
}

TEST_CASE("link: what isn't an object is refused by name") {
    const auto good = callee().finish();
    CHECK(problem(good, {}).starts_with("b.o"));
    elf::Writer big(elf::Target{.big_endian = true});
    CHECK(problem(good, big.finish()).find("b.o") != std::string::npos);
    elf::Writer foreign(elf::Target{.machine = EM_X86_64});
    CHECK(problem(good, foreign.finish()).starts_with("b.o: it isn't a BPF object"));
    CHECK(!link_objects({}));
    Unit broken; // a relocation past the end
    const uint32_t text = broken.code(".text", {kExit});
    broken.relocate(text, 4, 10, broken.of_section(text));
    CHECK(problem(good, broken.finish()).find("b.o: .rel.text: offset 0x4") != std::string::npos);
}

TEST_CASE("link: compilers' objects come out as they went in") {
    for (Bytes object : {golden_clang14, golden_clang19}) {
        const LinkInput inputs[] = {{object, "golden.o"}};
        auto linked = link_objects(inputs);
        REQUIRE(linked);
        auto before = parse_object(object, "golden.o"), after = parse_object(*linked, "golden.o");
        REQUIRE(before);
        REQUIRE(after);
        REQUIRE(before->programs.size() == after->programs.size());
        for (size_t i = 0; i < before->programs.size(); ++i) {
            const ProgramSpec &a = before->programs[i], &b = after->programs[i];
            CHECK(a.name == b.name);
            CHECK(a.insns == b.insns);
            CHECK(a.core_relocations.size() == b.core_relocations.size());
            CHECK(a.func_info.size() == b.func_info.size());
            CHECK(a.line_info.size() == b.line_info.size());
            REQUIRE(a.fixups.size() == b.fixups.size());
            for (size_t f = 0; f < a.fixups.size(); ++f) {
                CHECK(a.fixups[f].insn == b.fixups[f].insn);
                CHECK(a.fixups[f].map == b.fixups[f].map);
                CHECK(a.fixups[f].offset == b.fixups[f].offset);
            }
        }
        REQUIRE(before->maps.size() == after->maps.size());
        for (size_t i = 0; i < before->maps.size(); ++i) {
            CHECK(before->maps[i].name == after->maps[i].name);
            CHECK(before->maps[i].contents == after->maps[i].contents);
        }
        const LinkInput twice[] = {{object, "a.o"}, {object, "b.o"}};
        auto conflict = link_objects(twice);
        REQUIRE(!conflict);
        CHECK(conflict.error().message().find("is defined in a.o and in b.o") != std::string::npos);
    }
}

TEST_CASE("link: objects cut or changed anywhere are linked or refused") {
    const std::vector<std::byte> whole = test::sample_object({.with_externs = true});
    size_t refused = 0, linked = 0;
    auto look = [&](const std::vector<std::byte> &bytes) {
        const LinkInput inputs[] = {{bytes, "x.o"}};
        auto out = link_objects(inputs);
        ++(out ? linked : refused);
        if (out) CHECK(elf::Elf::parse(*out, "out.o"));
    };
    const size_t every = test::slow() ? 3 : 1; // 17 s otherwise
    for (size_t cut = 0; cut < whole.size(); cut += every) look({whole.begin(), whole.begin() + static_cast<long>(cut)});
    for (size_t at = 0; at < whole.size(); at += every) {
        std::vector<std::byte> changed = whole;
        changed[at] ^= std::byte{0x41};
        look(changed);
    }
    CHECK(refused > 100);
    CHECK(linked > 100);
}

TEST_CASE("link: a global symbol that is a number, in no section, is passed over") {
    Unit absolute;
    absolute.symbol("version", SHN_ABS, 7, 0, STT_NOTYPE);
    auto out = link(absolute.finish(), callee().finish());
    REQUIRE(out);
    CHECK(parse_object(*out, "out.o"));
    CHECK(link(callee().finish(), absolute.finish()));
}

TEST_CASE("link: jump tables move with the code that uses them, and their names stay their file's") {
    Unit a;
    const uint32_t text = a.code(".text", {wide(0), {}, mov(1), kExit});
    const uint32_t program = a.code("syscall", {wide(0), {}, mov(2), mov(3), kExit});
    const uint64_t entries[] = {16, 24, 32, 24, 16};
    const uint32_t tables = a.elf.add_section(".jumptables", 0, std::as_bytes(std::span(entries)), 1);
    a.symbol("helper", text, 0, 32, STT_FUNC, STB_LOCAL);
    a.symbol("mine", program, 0, 40, STT_FUNC);
    a.relocate(text, 0, 1, a.symbol("BPF.JT.1.0", tables, 0, 16, STT_OBJECT));
    a.relocate(program, 0, 1, a.symbol("BPF.JT.2.0", tables, 16, 24, STT_OBJECT));
    a.types.add_func("mine", a.proto, 1);
    const std::vector<std::byte> first = a.finish();
    const ObjectSpec alone = parse_object(golden_jumps, "jumps.o").value();

    for (bool swapped : {false, true}) {
        CAPTURE(swapped);
        LinkInput inputs[] = {{first, "a.o"}, {golden_jumps, "jumps.o"}};
        if (swapped) std::swap(inputs[0], inputs[1]);
        auto object = link_objects(inputs);
        REQUIRE_MESSAGE(object.has_value(), (object ? "" : object.error().message()));
        auto spec = parse_object(*object, "out.o");
        REQUIRE_MESSAGE(spec.has_value(), (spec ? "" : spec.error().message()));
        REQUIRE(spec->programs.size() == 3);
        CHECK(spec->find_program("mine")->jump_tables == std::vector<std::vector<uint32_t>>{{4, 3, 2}});
        for (const ProgramSpec &program : alone.programs)
            CHECK(spec->find_program(program.name)->jump_tables == program.jump_tables);
    }
}

TEST_CASE("link: a jump table that code of two sections uses can't move") {
    auto object = [] {
        Unit u;
        const uint32_t text = u.code(".text", {wide(0), {}, mov(1), kExit}), xdp = u.code("xdp", {wide(0), {}, mov(1), kExit});
        const uint64_t entries[] = {16, 24};
        const uint32_t tables = u.elf.add_section(".jumptables", 0, std::as_bytes(std::span(entries)), 1);
        const uint32_t table = u.symbol("BPF.JT.0.0", tables, 0, 16, STT_OBJECT);
        u.relocate(text, 0, 1, table);
        u.relocate(xdp, 0, 1, table);
        return u.finish(false);
    };
    Unit before;
    before.code("xdp", {mov(7), kExit});
    CHECK(link(before.finish(false), object())
              .error()
              .message()
              .find("jump table BPF.JT.0.0 is used by the code of two sections") != std::string::npos);
    CHECK(link(object(), before.finish(false)).has_value());
}
