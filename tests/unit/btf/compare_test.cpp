// CO-RE's three questions about two types. Each row is a local and a target type and the three answers.
#include "runtime/btf/compare.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using btf::Btf;
using btf::Kind;
using btf::TypeId;

namespace {

struct Pair {
    btf::Writer local, target;
    std::vector<std::byte> local_bytes, target_bytes;

    struct Answers {
        bool fields, compatible, match;
        bool operator==(const Answers &) const = default;
    };
    Answers ask(TypeId l, TypeId t) {
        local_bytes = local.finish();
        target_bytes = target.finish();
        auto a = Btf::parse(local_bytes, "local"), b = Btf::parse(target_bytes, "target");
        REQUIRE(a);
        REQUIRE(b);
        auto fields = btf::fields_compatible(*a, l, *b, t);
        auto compatible = btf::types_compatible(*a, l, *b, t);
        auto match = btf::types_match(*a, l, *b, t);
        REQUIRE(fields);
        REQUIRE(compatible);
        REQUIRE(match);
        return {*fields, *compatible, *match};
    }
};

/// fields, compatible, match
constexpr Pair::Answers kAll{true, true, true}, kNone{false, false, false};

} // namespace

namespace doctest {
template <> struct StringMaker<Pair::Answers> {
    static String convert(const Pair::Answers &a) {
        return format("fields {}, compatible {}, match {}", a.fields, a.compatible, a.match).c_str();
    }
};
} // namespace doctest

TEST_CASE("btf compare: ints") {
    Pair p;
    TypeId i32 = p.local.add_int("int", 4, true);
    TypeId t32 = p.target.add_int("int", 4, true), t64 = p.target.add_int("int", 8, true),
           u32 = p.target.add_int("int", 4, false);
    TypeId other = p.target.add_int("long", 4, true);
    TypeId bits = p.target.add_int("int", 4, btf::IntEncoding{.bits = 3, .bit_offset = 2, .is_signed = true});
    TypeId real = p.target.add_float("int", 4);
    CHECK(p.ask(i32, t32) == kAll);
    CHECK(p.ask(i32, t64) == Pair::Answers{true, true, false});
    CHECK(p.ask(i32, u32) == Pair::Answers{true, true, false});
    CHECK(p.ask(i32, other) == Pair::Answers{true, true, false});
    CHECK(p.ask(i32, bits) == Pair::Answers{false, false, true}); // the match asks for size and sign only
    CHECK(p.ask(i32, real) == kNone);
}

TEST_CASE("btf compare: structs, unions and forward declarations") {
    Pair p;
    TypeId l_int = p.local.add_int("int", 4, true);
    TypeId local = p.local.add_struct("s___mine", 4, {{"a", l_int, 0}});
    TypeId local_ptr = p.local.add_ptr(local);
    TypeId fwd_ptr = p.local.add_ptr(p.local.add_fwd("s"));
    TypeId union_fwd_ptr = p.local.add_ptr(p.local.add_fwd("s", true));
    TypeId t_int = p.target.add_int("int", 4, true);
    TypeId more = p.target.add_struct("s", 8, {{"b", t_int, 0}, {"a", t_int, 32}});
    TypeId without = p.target.add_struct("s", 8, {{"b", t_int, 0}, {"c", t_int, 32}});
    TypeId as_union = p.target.add_struct("s", 4, {{"a", t_int, 0}}, true);
    TypeId other_name = p.target.add_struct("t", 4, {{"a", t_int, 0}});
    TypeId other_type = p.target.add_struct("s", 4, {{"a", p.target.add_ptr(t_int), 0}});
    TypeId fwd = p.target.add_fwd("s");
    CHECK(p.ask(local, more) == kAll);
    CHECK(p.ask(local, without) == Pair::Answers{true, true, false});
    CHECK(p.ask(local, as_union) == Pair::Answers{true, false, false});
    CHECK(p.ask(local, other_name) == Pair::Answers{true, true, false});
    CHECK(p.ask(local, other_type) == Pair::Answers{true, true, false});
    CHECK(p.ask(local, fwd) == kNone);
    TypeId more_ptr = p.target.add_ptr(more), without_ptr = p.target.add_ptr(without), fwd_t_ptr = p.target.add_ptr(fwd);
    TypeId union_ptr = p.target.add_ptr(as_union);
    CHECK(p.ask(local_ptr, more_ptr) == kAll);
    CHECK(p.ask(local_ptr, without_ptr) == kAll); // behind a pointer only the name counts
    CHECK(p.ask(local_ptr, fwd_t_ptr) == Pair::Answers{true, false, true});
    CHECK(p.ask(fwd_ptr, more_ptr) == Pair::Answers{true, false, true});
    CHECK(p.ask(fwd_ptr, union_ptr) == Pair::Answers{true, false, false});
    CHECK(p.ask(union_fwd_ptr, union_ptr) == Pair::Answers{true, false, true});
    CHECK(p.ask(fwd_ptr, fwd_t_ptr) == kAll);
    CHECK(p.ask(union_fwd_ptr, fwd_t_ptr) == Pair::Answers{true, true, false});
}

TEST_CASE("btf compare: enums") {
    Pair p;
    TypeId local = p.local.add_enum("e", 4, {{"A", 0}, {"B", 1}});
    TypeId anonymous = p.local.add_enum("", 4, {{"A", 0}});
    TypeId more = p.target.add_enum("e", 4, {{"C", 0}, {"B", 5}, {"A", 6}});
    TypeId fewer = p.target.add_enum("e", 4, {{"A", 0}, {"C", 1}});
    TypeId wide = p.target.add_enum("e", 8, {{"A", 0}, {"B", 1}});
    TypeId other = p.target.add_enum("f", 4, {{"A", 0}, {"B", 1}});
    CHECK(p.ask(local, more) == kAll);
    CHECK(p.ask(local, fewer) == Pair::Answers{true, true, false});
    CHECK(p.ask(local, wide) == Pair::Answers{true, true, false}); // enum and enum64, but sizes differ
    CHECK(p.ask(local, other) == Pair::Answers{false, true, false});
    CHECK(p.ask(anonymous, other) == Pair::Answers{true, true, false});
}

TEST_CASE("btf compare: typedefs, modifiers and arrays") {
    Pair p;
    TypeId l_int = p.local.add_int("int", 4, true);
    TypeId l_typedef = p.local.add_typedef("t", p.local.add_modifier(Kind::const_, l_int));
    TypeId l_array = p.local.add_array(l_int, l_int, 3);
    TypeId t_int = p.target.add_int("int", 4, true);
    TypeId t_typedef = p.target.add_typedef("u", t_int);
    TypeId t_ptr = p.target.add_ptr(t_int);
    TypeId typedef_ptr = p.target.add_typedef("t", t_ptr);
    TypeId t_array = p.target.add_array(t_int, t_int, 3);
    TypeId longer = p.target.add_array(t_int, t_int, 4);
    TypeId pointers = p.target.add_array(t_ptr, t_int, 3);
    CHECK(p.ask(l_typedef, t_typedef) == kAll);
    CHECK(p.ask(l_typedef, t_int) == Pair::Answers{true, false, true}); // the root's kind counts for compatibility
    CHECK(p.ask(l_typedef, typedef_ptr) == kNone);
    CHECK(p.ask(l_array, t_array) == kAll);
    CHECK(p.ask(l_array, longer) == Pair::Answers{true, true, false});
    CHECK(p.ask(l_array, pointers) == kNone);
}

TEST_CASE("btf compare: function prototypes") {
    Pair p;
    TypeId l_int = p.local.add_int("int", 4, true);
    TypeId local = p.local.add_func_proto(l_int, {{"x", l_int}, {"y", p.local.add_ptr(0)}});
    TypeId t_int = p.target.add_int("int", 4, true);
    TypeId ptr = p.target.add_ptr(0);
    CHECK(p.ask(local, p.target.add_func_proto(t_int, {{"a", t_int}, {"b", ptr}})) == Pair::Answers{false, true, true});
    CHECK(p.ask(local, p.target.add_func_proto(t_int, {{"a", ptr}, {"b", t_int}})) == kNone);
    CHECK(p.ask(local, p.target.add_func_proto(t_int, {{"a", t_int}})) == kNone);
    CHECK(p.ask(local, p.target.add_func_proto(0, {{"a", t_int}, {"b", ptr}})) == kNone);
}

TEST_CASE("btf compare: nesting without end is an error") {
    btf::Writer w;
    (void)w.add_ptr(1);         // a pointer to itself
    (void)w.add_array(2, 2, 1); // an array of itself
    std::vector<std::pair<std::string_view, TypeId>> params(10, {"", 4});
    (void)w.add_typedef("x", 4);
    (void)w.add_func_proto(3, params); // 10 parameters of its own type: 10^32 paths
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "x");
    REQUIRE(b);
    CHECK(!btf::types_compatible(*b, 1, *b, 1));
    CHECK(!btf::types_match(*b, 1, *b, 1));
    CHECK(!btf::fields_compatible(*b, 2, *b, 2));
    auto endless = btf::types_compatible(*b, 4, *b, 4);
    REQUIRE(!endless);
    CHECK(endless.error().context == "comparing type 4 of x with type 4 of x: they are nested more than 32 deep");
    CHECK(!btf::types_match(*b, 4, *b, 4));

    btf::Writer wide; // each level has the same two members twice: 2^31 paths, none of them too deep
    for (TypeId level = 1; level < 31; ++level) (void)wide.add_struct("s", 4, {{"a", level + 1, 0}, {"a", level + 1, 0}});
    (void)wide.add_struct("s", 4, {});
    std::vector<std::byte> wide_bytes = wide.finish();
    auto c = Btf::parse(wide_bytes, "wide");
    REQUIRE(c);
    auto matched = btf::types_match(*c, 1, *c, 1);
    REQUIRE(!matched);
    CHECK(matched.error().context == "comparing types of wide with those of wide: the comparison has no end after 1000000 steps");
}
