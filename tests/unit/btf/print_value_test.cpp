// Values as C and as JSON: each kind, what people want to read, and types that don't fit their bytes.
#include "runtime/btf/print_value.h"

#include <cstring>

#include "tests/support/test.h"
#include "tests/unit/btf/samples.h"

using namespace rawbpf;
using btf::Btf;
using btf::Kind;
using btf::TypeId;
using btf::ValueStyle;

namespace {

struct Types {
    btf::Writer w;
    std::vector<std::byte> bytes;
    TypeId u8 = w.add_int("unsigned char", 1, false), s32 = w.add_int("int", 4, true), u32 = w.add_int("unsigned int", 4, false),
           u64 = w.add_int("unsigned long", 8, false), chr = w.add_int("char", 1, true),
           truth = w.add_int("_Bool", 1, {8, 0, false, false, true}), real = w.add_float("double", 8),
           wide = w.add_int("__int128", 16, true);
    TypeId ptr = w.add_ptr(s32), comm = w.add_array(chr, u32, 8), few = w.add_array(u32, u32, 3),
           many = w.add_array(u32, u32, 64);
    TypeId state = w.add_enum("state", 4, {{"IDLE", 0}, {"BUSY", 7}, {"LOST", -1}}, true);
    Btf parse() {
        bytes = w.finish();
        return Btf::parse(bytes, "types").value();
    }
};

template <class T> Bytes of(const T &value) { return {reinterpret_cast<const std::byte *>(&value), sizeof value}; }
std::string c(const Btf &b, TypeId id, Bytes bytes) { return btf::print_value(b, id, bytes).value(); }
std::string json(const Btf &b, TypeId id, Bytes bytes) { return btf::print_value(b, id, bytes, ValueStyle::json).value(); }

} // namespace

TEST_CASE("btf value: numbers, truths, names, addresses") {
    Types t;
    TypeId pid = t.w.add_typedef("pid_t", t.w.add_modifier(Kind::const_, t.s32));
    Btf b = t.parse();
    CHECK(c(b, t.s32, of(-5)) == "-5");
    CHECK(json(b, pid, of(-5)) == "-5");
    CHECK(c(b, t.u64, of(~uint64_t{0})) == "18446744073709551615");
    CHECK(json(b, t.u64, of(~uint64_t{0})) == "\"18446744073709551615\"");
    CHECK(json(b, t.u64, of(uint64_t{1} << 53)) == "9007199254740992");
    CHECK(c(b, t.s32, of(INT32_MIN)) == "-2147483648");
    CHECK(c(b, t.truth, of(uint8_t{1})) == "true");
    CHECK(c(b, t.truth, of(uint8_t{2})) == "2"); // what no bool can be is shown as it is
    CHECK(c(b, t.state, of(7)) == "BUSY");
    CHECK(c(b, t.state, of(-1)) == "LOST");
    CHECK(c(b, t.state, of(9)) == "9");
    CHECK(json(b, t.state, of(7)) == "\"BUSY\"");
    CHECK(c(b, t.ptr, of(uint64_t{0xffffffff81000000})) == "0xffffffff81000000");
    CHECK(json(b, t.ptr, of(uint64_t{16})) == "\"0x10\"");
    CHECK(c(b, t.real, of(1.5)) == "1.5");
    CHECK(json(b, t.real, of(__builtin_inf())) == "null");
    struct Wide {
        uint64_t low = 1, high = 2;
    } wide;
    CHECK(c(b, t.wide, of(wide)) == "0x00000000000000020000000000000001");
}

TEST_CASE("btf value: text, arrays, sparse arrays") {
    Types t;
    Btf b = t.parse();
    CHECK(c(b, t.comm, of("bash\0\0\0")) == "\"bash\"");
    CHECK(json(b, t.comm, of("a\"b\\c\nd")) == "\"a\\\"b\\\\c\\nd\"");
    CHECK(c(b, t.comm, of("\0\0\0\0\0\0\0")) == "\"\"");
    CHECK(c(b, t.comm, of("ab\0cd\0\0")) == "{97, 98, 0, 99, 100, 0, 0, 0}"); // not text
    uint32_t few[3] = {1, 0, 3};
    CHECK(c(b, t.few, of(few)) == "{1, 0, 3}");
    CHECK(json(b, t.few, of(few)) == "[1,0,3]");
    uint32_t many[64] = {};
    CHECK(c(b, t.many, of(many)) == "{}");
    many[3] = 7, many[63] = 1;
    CHECK(c(b, t.many, of(many)) == "{[3] = 7, [63] = 1}");
    CHECK(json(b, t.many, of(many)).starts_with("[0,0,0,7,0,"));
}

TEST_CASE("btf value: structs, unions, bitfields, what has no name") {
    Types t;
    TypeId inner = t.w.add_struct("", 8, {{"as_int", t.s32, 0}, {"as_bytes", t.u64, 0}}, true);
    TypeId outer = t.w.add_struct("event", 32,
                                  {{"pid", t.u32, 0},
                                   {"low", t.u32, 32, 3},
                                   {"high", t.s32, 35, 5},
                                   {"comm", t.comm, 64},
                                   {"", inner, 128},
                                   {"state", t.state, 192, 4}});
    Btf b = t.parse();
    struct {
        uint32_t pid = 12;
        uint32_t bits = 5 | 0x1f << 3;
        char comm[8] = "ls";
        uint64_t both = 3;
        uint64_t state = 7;
    } event;
    CHECK(c(b, outer, of(event)) ==
          "{.pid = 12, .low = 5, .high = -1, .comm = \"ls\", .as_int = 3, .as_bytes = 3, .state = BUSY}");
    CHECK(json(b, outer, of(event)) ==
          "{\"pid\":12,\"low\":5,\"high\":-1,\"comm\":\"ls\",\"as_int\":3,\"as_bytes\":3,\"state\":\"BUSY\"}");
    // Every shorter value is an error, not a crash.
    for (size_t n = 0; n < sizeof event; ++n) CHECK_FALSE(btf::print_value(b, outer, of(event).first(n)));
}

TEST_CASE("btf value: types that would never end, and types larger than their bytes") {
    Types t;
    TypeId empty = t.w.add_struct("empty", 0, {});
    TypeId endless = t.w.add_array(empty, t.u32, UINT32_MAX), huge = t.w.add_array(t.u64, t.u32, UINT32_MAX);
    TypeId twice = t.w.add_struct("leaf", 1, {});
    for (int i = 0; i < 30; ++i) twice = t.w.add_struct("", 1, {{"", twice, 0}, {"", twice, 0}}, true); // 2^30 nothings
    TypeId far = t.w.add_struct("far", 8, {{"x", t.u32, 0xfffffff0}});
    TypeId badbits = t.w.add_struct("bits", 4, {{"x", t.u32, 31, 8}});
    Btf b = t.parse();
    uint64_t value = 0;
    for (TypeId id : {endless, huge, twice, far, badbits}) CHECK_FALSE(btf::print_value(b, id, of(value)));
    CHECK_FALSE(btf::print_value(b, 4711, of(value)));
    CHECK(c(b, 0, of(value)) == "0"); // void: eight bytes that nobody described
}

TEST_CASE("btf value: without a type") {
    CHECK(btf::print_untyped(of(uint32_t{7})) == "7");
    CHECK(btf::print_untyped(of(~uint64_t{0}), ValueStyle::json) == "\"18446744073709551615\"");
    const uint8_t three[3] = {1, 2, 255};
    CHECK(btf::print_untyped(of(three)) == "{0x01, 0x02, 0xff}");
    CHECK(btf::print_untyped(of(three), ValueStyle::json) == "\"01 02 ff\"");
    CHECK(btf::print_untyped({}) == "{}");
}
