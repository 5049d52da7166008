// Bundles as text; tests/cli/bundle_test.py compiles, loads and runs them.
#include "programs/inspect/bundle_header.h"
#include "programs/inspect/bundle_variables.h"
#include "programs/inspect/c_words.h"
#include "runtime/object/elf_object.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang19;
}
using namespace rawbpf;

namespace {

/// A kernel with the types that the sample object asks for.
const std::vector<std::byte> &kernel_bytes() {
    static const std::vector<std::byte> bytes = [] {
        btf::Writer w;
        const auto i32 = w.add_int("int", 4, true), u64 = w.add_int("unsigned long", 8, false);
        (void)w.add_struct("task_struct", 64,
                           {{"state", u64, 0}, {"pid", i32, 64}, {"tgid", i32, 96}, {"in_execve", i32, 129, 1}}, true);
        return w.finish();
    }();
    return bytes;
}

} // namespace

TEST_CASE("bundle: an object for two kernels, which differ in their instructions") {
    const auto spec = parse_object(golden_clang19, "golden.o");
    REQUIRE(spec);
    CHECK(inspect::depends_on_kernel(*spec));
    CHECK(inspect::bundle_header(*spec, golden_clang19, "golden", {}).error().kind == Errc::unsupported);
    const auto types = btf::Btf::parse(kernel_bytes(), "kernel");
    REQUIRE(types);
    const inspect::BundleKernel kernels[] = {{"one", &*types}, {"two \"quoted\"", &*types}};
    const auto bundle = inspect::bundle_header(*spec, golden_clang19, "golden", kernels);
    REQUIRE(bundle);
    CHECK(bundle->needs_kernels);
    for (const char *wanted : {"#ifndef golden_BUNDLE_H", "static const struct rawbpf_bundle_map golden_maps[] = {",
                               "static union {\n    unsigned char bytes[", "golden_program_", "{\"one\", ",
                               "{\"two \\\"quoted\\\"\", ", "static inline int golden_load_live("}) {
        CAPTURE(wanted);
        CHECK(bundle->text.find(wanted) != std::string::npos);
    }
}

TEST_CASE("bundle: variables that C can't lay out so are bytes, and gaps are members") {
    btf::Writer w;
    const auto i32 = w.add_int("int", 4, true), u16 = w.add_int("unsigned short", 2, false), c = w.add_int("char", 1, true);
    const auto s = w.add_struct("a*/b", 12, {{"x", i32, 0}});
    const auto table = w.add_array(w.add_array(u16, i32, 3), i32, 2), lies = w.add_array(i32, i32, 1000),
               none = w.add_array(i32, i32, 0);
    std::vector<btf::VarSecinfo> places;
    const auto add = [&](const char *name, btf::TypeId type, uint32_t at, uint32_t size) {
        places.push_back({w.add_var(name, type, 1), at, size});
    };
    add("late", s, 40, 12);
    add("text", c, 0, 1);
    add("number", i32, 4, 4);
    add("crooked", i32, 9, 4);
    add("table", table, 14, 12);
    add("lies", lies, 28, 4);
    add("nothing", none, 32, 0);
    w.add_datasec(".data", 56, places);
    const std::vector<std::byte> bytes = w.finish();
    const auto types = btf::Btf::parse(bytes, "t");
    REQUIRE(types);
    MapSpec map;
    map.data_section = ".data";
    map.value_size = 56;
    const auto out = inspect::bundle_variables(*types, map);
    REQUIRE(out);
    CHECK(out->members == "        char text;\n        unsigned char rawbpf_gap_1[3];\n        int32_t number;\n        unsigned "
                          "char rawbpf_gap_8[1];\n"
                          "        unsigned char crooked[4]; /* int int */\n        unsigned char rawbpf_gap_13[1];\n        "
                          "uint16_t table[2][3];\n"
                          "        unsigned char rawbpf_gap_26[2];\n        unsigned char lies[4]; /* int int */\n        "
                          "unsigned char rawbpf_gap_32[8];\n"
                          "        unsigned char late[12]; /* struct a* /b */\n        unsigned char rawbpf_gap_52[4];\n");
    CHECK(out->variables.size() == 6);
    map.value_size = 50;
    CHECK(inspect::bundle_variables(*types, map).error().kind == Errc::bad_input);
}

TEST_CASE("bundle: names of a hostile object end no comment, no string and meet no other name") {
    ObjectSpec spec;
    spec.name = "x*/\n#error\n.o";
    for (const char *name : {"a.b", "a_b", "a\"b"}) {
        MapSpec map;
        map.name = name;
        map.type = 1;
        spec.maps.push_back(map);
    }
    ProgramSpec program;
    program.name = "f*/";
    program.section = "socket*/";
    program.type = 1;
    program.insns = {{0xb7, 0, 0, 0, 0}, {0x95, 0, 0, 0, 0}};
    spec.programs = {program};
    const auto bundle = inspect::bundle_header(spec, {}, "x", {});
    REQUIRE(bundle);
    CHECK(bundle->text.find("enum { x_map_a_b, x_map_a_b_2, x_map_a_b_3 };") != std::string::npos);
    CHECK(bundle->text.find("of x* /?#error?.o;") != std::string::npos);
    CHECK(bundle->text.find("/* socket* /: f* / */") != std::string::npos);
    CHECK(bundle->text.find("{\"a\\\"b\", ") != std::string::npos);
    CHECK(bundle->text.find("\n#error") == std::string::npos);
}

TEST_CASE("bundle: an object that is cut or has a byte changed") {
    const auto types = btf::Btf::parse(kernel_bytes(), "kernel");
    REQUIRE(types);
    const inspect::BundleKernel kernels[] = {{"one", &*types}};
    std::vector<std::byte> changed(golden_clang19.begin(), golden_clang19.end());
    for (size_t at = 0; at < changed.size(); at += test::emulated() ? 49 : 7) {
        if (const auto part = parse_object(golden_clang19.first(at), "cut.o"))
            (void)inspect::bundle_header(*part, golden_clang19.first(at), "cut", kernels);
        const std::byte was = changed[at];
        changed[at] ^= std::byte{0xff};
        if (const auto other = parse_object(changed, "changed.o"))
            (void)inspect::bundle_header(*other, changed, "changed", kernels);
        changed[at] = was;
    }
}
