// Skeletons as text; tests/install compiles and runs one.
#include "programs/inspect/skeleton_header.h"

#include "runtime/btf/c_header.h"
#include "runtime/object/elf_object.h"
#include "tests/support/test.h"

namespace rawbpf::inline v0 {
extern const std::span<const std::byte> golden_clang14, golden_clang19;
}
using namespace rawbpf;

TEST_CASE("skeleton: names") {
    CHECK(inspect::skeleton_name("build/runqlat.bpf.o") == "runqlat");
    CHECK(inspect::skeleton_name("my-tool.o") == "my_tool");
    CHECK(inspect::skeleton_name("9p.bpf.o") == "_9p");
    CHECK(inspect::skeleton_name("") == "_");
}

TEST_CASE("skeleton: variables, maps and programs are members") {
    for (Bytes object : {golden_clang14, golden_clang19}) {
        auto spec = parse_object(object, "a \"quoted\".o");
        REQUIRE(spec);
        auto text = inspect::skeleton_header(*spec, object, "golden");
        REQUIRE(text);
        for (const char *wanted :
             {"#include <rawbpf/runtime/link/skeleton.h>", "namespace golden {", "struct Bss {\n\tlong ticks;\n};",
              "struct Rodata {\n\tint limit;\n", "[[nodiscard]] Bss &bss() { return *static_cast<Bss *>(variables(\".bss\")); }",
              "::rawbpf::TypedMap<counts_key, counts_value> counts_map()", "::rawbpf::Program *fields_program()",
              "alignas(8) inline constexpr unsigned char kObject[] = {\n    127,69,76,70,", "\"a \\\"quoted\\\".o\""}) {
            CAPTURE(wanted);
            CHECK(text->find(wanted) != std::string::npos);
        }
    }
}

TEST_CASE("skeleton: types as C++ has them") {
    btf::Writer w;
    const auto i = w.add_int("int", 4, true), b = w.add_int("_Bool", 1, {.bits = 8, .is_bool = true});
    const auto flag = w.add_typedef("bool", b), mode = w.add_enum("mode", 1, {{"new", 1}}),
               wide = w.add_enum("wide", 8, {{"W", -1}}, true);
    const auto s = w.add_struct(
        "class", 24, {{"operator", i, 0}, {"on", flag, 32}, {"b", b, 40}, {"m", mode, 48}, {"w", wide, 64}, {"wide", i, 128}});
    w.add_typedef("class", s);
    const std::vector<std::byte> bytes = w.finish();
    auto types = btf::Btf::parse(bytes, "t");
    REQUIRE(types);
    auto text = btf::c_header(*types, {.cplusplus = true});
    REQUIRE(text);
    CHECK(*text == R"(
enum mode : unsigned char {
	new_ = 1,
};

enum wide : long long {
	W = -1,
};

struct class_ {
	int operator_;
	bool on;
	bool b;
	enum mode m;
	enum wide w;
	int wide;
};
typedef struct class_ class____2;
)");
}

TEST_CASE("skeleton: an object without types or cut short") {
    ObjectSpec spec;
    spec.name = "x.o";
    MapSpec bss;
    bss.data_section = ".bss";
    spec.maps.push_back(bss);
    CHECK(inspect::skeleton_header(spec, {}, "x").error().kind == Errc::unsupported);
    for (size_t cut = 0; cut < golden_clang19.size(); cut += 11)
        if (auto part = parse_object(golden_clang19.first(cut), "cut.o"))
            (void)inspect::skeleton_header(*part, golden_clang19.first(cut), "cut");
}
