// Text into typed bytes: each row a type, a text, and the bytes or what the refusal says.
#include "runtime/btf/parse_value.h"

#include <cstring>

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using btf::Btf;
using btf::TypeId;

namespace {

struct Types {
    btf::Writer w;
    TypeId i32 = w.add_int("int", 4, true), u8 = w.add_int("unsigned char", 1, false), s8 = w.add_int("signed char", 1, true),
           u64 = w.add_int("unsigned long", 8, false),
           boolean = w.add_int("_Bool", 1, btf::IntEncoding{.bits = 8, .is_bool = true}), letter = w.add_int("char", 1, true),
           real = w.add_float("double", 8);
    TypeId text8 = w.add_array(letter, i32, 8), numbers = w.add_array(i32, i32, 4);
    TypeId inner = w.add_struct("", 8, {{"lo", i32, 0}, {"hi", i32, 32}});
    TypeId config = w.add_struct("config", 48, {{"pid", i32, 0}, {"", inner, 64}, {"name", text8, 128}, {"list", numbers, 192}});
    std::vector<std::byte> bytes = w.finish();
    Btf btf = *Btf::parse(bytes, "types");

    /// The bytes as numbers of 1 byte, or the error.
    std::string parse(TypeId id, std::string_view text) {
        std::vector<std::byte> out(*btf.size_of(id), std::byte{0x55});
        if (const Result<void> done = btf::parse_value(btf, id, text, out); !done) return done.error().message();
        std::string shown;
        for (std::byte b : out) append(shown, "{}{:02x}", shown.empty() ? "" : " ", static_cast<unsigned>(b));
        return shown;
    }
    std::string part(std::string_view path) {
        const Result<btf::ValuePart> found = btf::find_part(btf, config, path);
        return found ? format("{} at {}", *btf.size_of(found->type), found->offset) : found.error().message();
    }
};

} // namespace

TEST_CASE("btf parse value: numbers fit or are refused with what would") {
    Types t;
    CHECK(t.parse(t.i32, "258") == "02 01 00 00");
    CHECK(t.parse(t.i32, "-2") == "fe ff ff ff");
    CHECK(t.parse(t.i32, "0xffffffff") == "ff ff ff ff");
    CHECK(t.parse(t.i32, "-2147483648") == "00 00 00 80");
    CHECK(t.parse(t.u8, "'a'") == "61");
    CHECK(t.parse(t.boolean, "true") == "01");
    CHECK(t.parse(t.u64, "18446744073709551615") == "ff ff ff ff ff ff ff ff");
    CHECK(t.parse(t.i32, "2147483648") == "\"2147483648\" isn't a value of type int: give -2147483648 to 2147483647");
    CHECK(t.parse(t.i32, "-2147483649").ends_with("-2147483648 to 2147483647"));
    CHECK(t.parse(t.u8, "256").ends_with("0 to 255"));
    CHECK(t.parse(t.u8, "-1").ends_with("0 to 255"));
    CHECK(t.parse(t.s8, "-128") == "80");
    CHECK(t.parse(t.s8, "-129").ends_with("-128 to 127"));
    CHECK(t.parse(t.u64, "18446744073709551616").ends_with("give a whole number"));
    for (const char *text : {"", "-", "+", "0x", "1x", " 1", "1 ", "--1", "''"})
        CHECK(t.parse(t.i32, text).ends_with("give a whole number"));
    CHECK(t.parse(t.boolean, "2").ends_with("give true or false"));
    CHECK(t.parse(t.real, "1.5") == "rawbpf can't read a value of type double from text");
}

TEST_CASE("btf parse value: text and arrays") {
    Types t;
    CHECK(t.parse(t.text8, "bash") == "62 61 73 68 00 00 00 00");
    CHECK(t.parse(t.text8, "\"a\"") == "61 00 00 00 00 00 00 00");
    CHECK(t.parse(t.text8, "1234567") == "31 32 33 34 35 36 37 00");
    CHECK(t.parse(t.text8, "12345678").ends_with("it holds at most 7 characters, and a zero byte after them"));
    CHECK(t.parse(t.numbers, "1, 2") == "01 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00");
    CHECK(t.parse(t.numbers, "{}") == "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
    CHECK(t.parse(t.numbers, "1,2,3,4,5").ends_with("there are 4 elements"));
    CHECK(t.parse(t.numbers, "1,x").ends_with("give a whole number"));
    CHECK(t.parse(t.config, "1") ==
          "it is a struct config: write {.MEMBER = VALUE, ...}, or set its members one by one, as NAME.MEMBER=VALUE");
}

TEST_CASE("btf parse value: parts of a variable") {
    Types t;
    CHECK(t.part("") == "48 at 0");
    CHECK(t.part(".pid") == "4 at 0");
    CHECK(t.part(".hi") == "4 at 12");
    CHECK(t.part(".list[3]") == "4 at 36");
    CHECK(t.part(".name[7]") == "1 at 23");
    CHECK(t.part(".list[4]") == "[4]: there are 4 elements, counted from 0");
    CHECK(t.part(".list[-1]") == "[-1]: there are 4 elements, counted from 0");
    CHECK(t.part(".list[0") == "\"[0\" has no closing bracket");
    CHECK(t.part(".pid[0]") == "[0]: int isn't an array");
    CHECK(t.part(".pid.x") == ".x: int has no members");
    CHECK(t.part(".").starts_with("struct config has no member"));
    const auto none = btf::find_part(t.btf, t.config, ".pidd");
    REQUIRE(!none);
    CHECK(none.error().hint == "its members: pid, lo, hi, name, list");
}

TEST_CASE("btf parse value: structs, member by member, the rest zero") {
    Types t;
    const std::string zeros = t.parse(t.config, "{}");
    CHECK(zeros.find_first_not_of("0 ") == std::string::npos);
    const std::string whole = t.parse(t.config, R"({.pid = 7, .hi=-1, .name = "a,}b", .list = {1, 2}})");
    CHECK(whole == "07 00 00 00 00 00 00 00 00 00 00 00 ff ff ff ff 61 2c 7d 62 00 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 "
                   "00 00 00 00 00 00 00 00 00 00 00 00");
    CHECK(t.parse(t.config, "{.list[3] = 5,}").ends_with("05 00 00 00 00 00 00 00 00 00 00 00"));
    CHECK(t.parse(t.config, "{.pid = x}") == ".pid: \"x\" isn't a value of type int: give a whole number");
    CHECK(t.parse(t.config, "{.nobody = 1}").starts_with("struct config has no member nobody"));
    CHECK(t.parse(t.config, "{7}") == "\"7\" isn't a value of type struct config: write its members as .MEMBER = VALUE");
    CHECK(t.parse(t.config, "{.pid}").ends_with("write its members as .MEMBER = VALUE"));
    CHECK(t.parse(t.config, "{,}").ends_with("write its members as .MEMBER = VALUE"));
    CHECK(t.parse(t.config, "{.pid = 1").starts_with("it is a struct config"));
    CHECK(t.parse(t.config, "{.name = {{{").starts_with("it is a struct config"));
}
