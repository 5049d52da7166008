// Types as C: the sample's, the declarations that everybody gets wrong, and BTF that would never end.
#include "runtime/btf/print_c.h"

#include "tests/support/test.h"
#include "tests/unit/btf/samples.h"

using namespace rawbpf;
using namespace rawbpf::test;
using btf::Btf;
using btf::Kind;
using btf::TypeId;

TEST_CASE("btf print: definitions") {
    std::vector<std::byte> bytes = sample_btf();
    auto b = Btf::parse(bytes, "sample");
    REQUIRE(b);
    CHECK(*btf::print_c(*b, id::task) == "struct task_struct {\n"
                                         "    pid_t pid;\n"
                                         "    struct task_struct *parent;\n"
                                         "    enum state state;\n"
                                         "    struct flags flags;\n"
                                         "    _Bool alive;\n"
                                         "};\n");
    CHECK(*btf::print_c(*b, id::flags, {.offsets = true}) == "struct flags {\n"
                                                             "    int low: 3; /* 0:0 */\n"
                                                             "    int high: 5; /* 0:3 */\n"
                                                             "    int rest; /* 4 */\n"
                                                             "};\n");
    CHECK(*btf::print_c(*b, id::state) == "enum state {\n    DEAD = -1,\n    BUSY = 7,\n};\n");
    CHECK(*btf::print_c(*b, id::big) == "enum big {\n    HUGE_VALUE = 1311768467463790320,\n};\n");
    CHECK(*btf::print_c(*b, id::state_union) == "union state {\n    int as_int;\n    struct task_struct *as_ptr;\n};\n");
    CHECK(*btf::print_c(*b, id::pid) == "typedef int pid_t;\n");
    CHECK(*btf::print_c(*b, id::func) == "int wake_up(struct task_struct *task, ...);\n");
    CHECK(*btf::print_c(*b, id::var) == "int counter;\n");
    CHECK(*btf::print_c(*b, id::data, {.offsets = true}) == "/* .data: 20 bytes */\nint counter; /* 16, 4 bytes */\n");
    CHECK(*btf::print_c(*b, id::other) == "struct other;\n");
    CHECK(*btf::print_c(*b, id::tag) == "/* tag \"kfunc\" on func wake_up */\n");
    CHECK(*btf::print_c(*b, id::real) == "/* double: 8 bytes */\n");
    CHECK(*btf::print_c(*b, id::matrix) == "/* int [3][10]: 120 bytes */\n");
    CHECK(*btf::print_c(*b, 0) == "/* void */\n");
    CHECK(!btf::print_c(*b, 1000));
}

TEST_CASE("btf print: declarations, inside out") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    TypeId c = w.add_int("char", 1, true);
    TypeId const_char = w.add_modifier(Kind::const_, c);
    TypeId const_char_ptr = w.add_ptr(const_char);
    TypeId const_ptr = w.add_modifier(Kind::const_, w.add_ptr(c));
    TypeId proto = w.add_func_proto(i, {{"signal", i}, {"text", const_char_ptr}});
    TypeId handler = w.add_ptr(proto);
    TypeId handlers = w.add_array(handler, i, 3);
    TypeId array = w.add_array(i, i, 10);
    TypeId array_ptr = w.add_ptr(array);
    TypeId const_array_ptr = w.add_ptr(w.add_modifier(Kind::const_, array));
    TypeId returns_handler = w.add_func_proto(handler, {});
    TypeId anonymous = w.add_struct("", 8, {{"a", i, 0}, {"b", i, 32}});
    TypeId anonymous_ptr = w.add_ptr(anonymous);
    TypeId user_ptr = w.add_ptr(w.add_type_tag("user", c));
    TypeId outer =
        w.add_struct("outer", 24, {{"", anonymous, 0}, {"named", anonymous, 64}, {"f", w.add_ptr(returns_handler), 128}});
    TypeId fwd = w.add_fwd("u", true);
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "x");
    REQUIRE(b);
    auto text = [&](TypeId id, std::string_view name = "x") { return *btf::declare(*b, id, name); };
    CHECK(text(i) == "int x");
    CHECK(text(i, "") == "int");
    CHECK(text(const_char_ptr) == "const char *x");
    CHECK(text(const_char_ptr, "") == "const char *");
    CHECK(text(const_ptr) == "char *const x");
    CHECK(text(const_ptr, "") == "char *const");
    CHECK(text(handler) == "int (*x)(int signal, const char *text)");
    CHECK(text(handler, "") == "int (*)(int signal, const char *text)");
    CHECK(text(handlers) == "int (*x[3])(int signal, const char *text)");
    CHECK(text(array) == "int x[10]");
    CHECK(text(array_ptr) == "int (*x)[10]");
    CHECK(text(const_array_ptr) == "const int (*x)[10]");
    CHECK(text(returns_handler) == "int (*x(void))(int signal, const char *text)");
    CHECK(text(anonymous_ptr) == "struct {...} *x");
    CHECK(text(fwd, "") == "union u");
    CHECK(text(user_ptr) == "char *x");
    CHECK(*btf::declare(*b, user_ptr, "x", {.tags = true}) == "__attribute__((btf_type_tag(\"user\"))) char *x");
    CHECK(btf::describe(*b, array_ptr) == "int (*)[10]");
    CHECK(btf::describe(*b, 1000) == "type 1000");
    CHECK(*btf::print_c(*b, outer, {.offsets = true}) == "struct outer {\n"
                                                         "    struct {\n"
                                                         "        int a; /* 0 */\n"
                                                         "        int b; /* 4 */\n"
                                                         "    }; /* 0 */\n"
                                                         "    struct {\n"
                                                         "        int a; /* 0 */\n"
                                                         "        int b; /* 4 */\n"
                                                         "    } named; /* 8 */\n"
                                                         "    int (*(*f)(void))(int signal, const char *text); /* 16 */\n"
                                                         "};\n");
}

TEST_CASE("btf print: packed structs are marked") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true), c = w.add_int("char", 1, true);
    TypeId inner = w.add_struct("inner", 5, {{"c", c, 0}, {"i", i, 8}});
    TypeId outer = w.add_struct("outer", 6, {{"c", c, 0}, {"in", inner, 8}}); // natural: inner may lie anywhere
    TypeId tail = w.add_struct("tail", 5, {{"i", i, 0}, {"c", c, 32}});
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "x");
    REQUIRE(b);
    CHECK(*btf::print_c(*b, inner) == "struct inner {\n    char c;\n    int i;\n} __attribute__((packed));\n");
    CHECK(*btf::print_c(*b, outer) == "struct outer {\n    char c;\n    struct inner in;\n};\n");
    CHECK(btf::print_c(*b, tail)->ends_with("} __attribute__((packed));\n"));
}

TEST_CASE("btf print: hostile types end in errors and names can't reach the terminal") {
    btf::Writer w;
    (void)w.add_ptr(1);
    (void)w.add_typedef("evil\x1b[31m", 0);
    std::vector<btf::Writer::Field> same(20, {"", 4, 0});
    (void)w.add_func_proto(0, {{"", 3}});
    for (TypeId level = 4; level < 16; ++level) {
        for (btf::Writer::Field &f : same) f.type = level + 1;
        (void)w.add_struct("", 4, same); // each level unfolds the next 20 times
    }
    (void)w.add_int("int", 4, true);
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "hostile");
    REQUIRE(b);
    auto endless = btf::declare(*b, 1);
    REQUIRE(!endless);
    CHECK(endless.error().context == "hostile: BTF type 1: it is nested more than 64 deep");
    CHECK(*btf::print_c(*b, 2) == "typedef void evil\\x1b[31m;\n");
    CHECK(!btf::declare(*b, 3));
    auto huge = btf::print_c(*b, 4);
    REQUIRE(!huge);
    CHECK(huge.error().context == "hostile: BTF: the C text of a type has more than 4194304 bytes");
    CHECK(btf::describe(*b, 1) == "type 1");
}
