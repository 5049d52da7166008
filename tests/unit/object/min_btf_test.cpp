// Minimal BTF: the same answers as from the whole, and nothing more than they need.
#include "runtime/object/min_btf.h"

#include "runtime/btf/print_raw.h"
#include "runtime/object/elf_object.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19;
}
using namespace rawbpf;

namespace {

std::string listing(Bytes bytes) {
    auto b = btf::Btf::parse(bytes, "small");
    if (!b) return b.error().message();
    auto printer = btf::RawPrinter::make(*b);
    if (!printer) return printer.error().message();
    std::string out;
    for (btf::TypeId id = 1; id < b->end_id(); ++id) printer->append(out, id);
    return out;
}

struct Kernel {
    std::vector<std::byte> bytes;
    std::optional<btf::Btf> btf;
    explicit Kernel(const btf::Writer &w) : bytes(w.finish()) { btf = *btf::Btf::parse(bytes, "vmlinux"); }
};

btf::Writer big_kernel() {
    btf::Writer w;
    const auto i32 = w.add_int("int", 4, true), u32 = w.add_int("unsigned int", 4, false);
    const auto u64 = w.add_int("unsigned long", 8, false), c = w.add_int("char", 1, true);
    w.add_struct("not_needed", 8, {{"x", u64, 0}});
    const auto counters = w.add_struct("", 16, {{"rss", u64, 0}, {"total_vm", u64, 64}});
    const auto mm = w.add_struct("mm_struct", 816, {{"pad", u64, 0}, {"", counters, 800 * 8}});
    const auto pid_t = w.add_typedef("pid_t", i32);
    w.add_struct("task_struct", 4000,
                 {{"__state", u32, 24 * 8},
                  {"pid", pid_t, 1000 * 8},
                  {"mm", w.add_ptr(mm), 1008 * 8},
                  {"in_execve", u32, 1200 * 8 + 5, 1},
                  {"group_leader", w.add_ptr(w.next_id() + 2), 1300 * 8},
                  {"unused", w.add_ptr(5), 1310 * 8},
                  {"comm", w.add_array(c, u32, 24), 1400 * 8}});
    w.add_enum("pid_type", 4, {{"PIDTYPE_PID", 0}, {"PIDTYPE_TGID", 3}, {"PIDTYPE_MAX", 4}});
    return w;
}

} // namespace

TEST_CASE("min btf: what compilers' objects need, and the same instructions as with the whole") {
    const Kernel kernel(big_kernel());
    for (Bytes object : {golden_clang14, golden_clang19}) {
        auto spec = parse_object(object, "golden.o");
        REQUIRE(spec);
        for (ProgramSpec &program : spec->programs) program.autoload = true;
        const ObjectSpec list[] = {*spec};
        auto small = minimal_btf(list, *kernel.btf);
        REQUIRE(small);
        CHECK(small->btf.size() < kernel.bytes.size());
        const std::string text = listing(small->btf);
        CHECK(text.find("not_needed") == std::string::npos);
        CHECK(text.find("unused") == std::string::npos);
        CHECK(text.find("PIDTYPE_MAX") == std::string::npos);
        CHECK(text.find("'rss'") == std::string::npos);
        CHECK(text.find("'total_vm'") != std::string::npos); // inside an anonymous struct
        auto types = btf::Btf::parse(small->btf, "vmlinux");
        REQUIRE(types);
        ObjectSpec whole = *spec, with_small = *spec;
        const btf::Btf *big[] = {&*kernel.btf}, *little[] = {&*types};
        auto a = relocate_core(whole, big), b = relocate_core(with_small, little);
        REQUIRE(a);
        REQUIRE(b);
        CHECK(a->relocated == b->relocated);
        CHECK(a->poisoned == b->poisoned);
        size_t differ = 0;
        for (size_t p = 0; p < whole.programs.size(); ++p)
            for (size_t i = 0; i < whole.programs[p].insns.size(); ++i)
                differ += !(whole.programs[p].insns[i] == with_small.programs[p].insns[i]);
        CHECK(differ == small->type_ids); // ids are other ones; the golden object asks for one, whose number differs
    }
}

TEST_CASE("min btf: whole types are compared with what is behind their pointers") {
    btf::Writer local;
    const auto i = local.add_int("int", 4, true);
    const auto fn = local.add_typedef("fn_t", local.add_ptr(local.add_func_proto(i, {{"a", local.add_ptr(i)}})));
    const auto s = local.add_struct("pair", 8, {{"a", i, 0}, {"e", local.add_enum("mode", 4, {{"M", 1}}), 32}});
    ObjectSpec spec;
    spec.name = "x.o";
    spec.btf = local.finish();
    ProgramSpec p;
    p.name = "p";
    p.insns.assign(3, Insn{.code = 0xb7, .imm = 1});
    p.core_relocations = {{0, fn, "0", static_cast<uint32_t>(CoreKind::type_exists)},
                          {1, s, "0", static_cast<uint32_t>(CoreKind::type_matches)},
                          {2, s, "0", static_cast<uint32_t>(CoreKind::type_size)}};
    p.insns[2].imm = 8;
    spec.programs.push_back(p);

    btf::Writer w;
    const auto k = w.add_int("int", 4, true);
    w.add_typedef("fn_t", w.add_ptr(w.add_func_proto(k, {{"a", w.add_ptr(k)}})));
    w.add_struct("pair", 12, {{"a", k, 0}, {"e", w.add_enum("mode", 4, {{"L", 0}, {"M", 1}}), 32}, {"more", k, 64}});
    const Kernel kernel(w);
    const ObjectSpec list[] = {spec};
    auto small = minimal_btf(list, *kernel.btf);
    REQUIRE(small);
    auto types = btf::Btf::parse(small->btf, "vmlinux");
    REQUIRE(types);
    const btf::Btf *little[] = {&*types};
    REQUIRE(relocate_core(spec, little));
    CHECK(spec.programs[0].insns[0].imm == 1);
    CHECK(spec.programs[0].insns[1].imm == 1);
    CHECK(spec.programs[0].insns[2].imm == 12);
}

TEST_CASE("min btf: bad input") {
    const Kernel kernel(big_kernel());
    ObjectSpec spec;
    spec.name = "x.o";
    ProgramSpec p;
    p.name = "p";
    p.core_relocations.push_back({0, 1, "0:9", 0});
    spec.programs.push_back(p);
    const ObjectSpec without[] = {spec};
    CHECK(minimal_btf(without, *kernel.btf).error().message() == "x.o: the object has CO-RE relocations, but no .BTF");
    btf::Writer w;
    w.add_struct("s", 4, {{"a", w.next_id() + 1, 0}});
    w.add_int("int", 4, true);
    spec.btf = w.finish();
    const ObjectSpec broken[] = {spec};
    CHECK(!minimal_btf(broken, *kernel.btf));
    // Nothing needed: an empty BTF, which is one all the same.
    auto none = minimal_btf({}, *kernel.btf);
    REQUIRE(none);
    CHECK(listing(none->btf).empty());
}
