// Headers: layouts that C wouldn't choose, names that C wouldn't take, enums of other sizes.
#include "runtime/btf/c_header.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/btf/header_of.h"
#include "tests/unit/btf/samples.h"

using namespace rawbpf;
using namespace rawbpf::test;
using btf::Btf;
using btf::Kind;
using btf::TypeId;

TEST_CASE("btf header: packing, gaps and alignment") {
    btf::Writer w;
    TypeId c = w.add_int("char", 1, true), i = w.add_int("int", 4, true), l = w.add_int("long int", 8, true);
    w.add_struct("packed", 5, {{"c", c, 0}, {"i", i, 8}});
    w.add_struct("short_end", 12, {{"l", l, 0}, {"i", i, 64}});
    TypeId aligned = w.add_struct("aligned", 64, {{"l", l, 0}});
    w.add_struct("holder", 192, {{"c", c, 0}, {"a", aligned, 512}, {"d", c, 1024}});
    w.add_struct("gap", 16, {{"i", i, 0}, {"j", i, 96}});
    w.add_struct("chars", 3, {{"a", c, 0}, {"b", c, 16}});
    w.add_struct("wide", 4096, {{"l", l, 0}, {"m", l, 4095 * 8 - 56}});
    w.add_struct("empty", 0, {});
    w.add_struct("opaque", 4, {});
    w.add_struct("unaligned_in", 9, {{"c", c, 0}, {"p", w.next_id() + 1, 8}});
    w.add_struct("eight", 8, {{"l", l, 0}});
    w.add_struct("u", 16, {{"c", c, 0}}, true);
    w.add_struct("odd", 5, {{"c", c, 0}, {"i", i, 0}}, true);
    CHECK(header_of(w) == R"(
struct packed {
	char c;
	int i;
} __attribute__((packed));

struct short_end {
	long int l;
	int i;
} __attribute__((packed));

struct aligned {
	long int l;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
};

struct holder {
	char c;
	long long: 56;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	struct aligned a;
	char d;
	long long: 56;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
	long long: 64;
};

struct gap {
	int i;
	int: 32;
	int: 32;
	int j;
};

struct chars {
	char a;
	char: 8;
	char b;
};

struct wide {
	long int l;
	unsigned char __pad_8[4080];
	long int m;
};

struct empty {
};

struct opaque {
	char: 8;
	char: 8;
	char: 8;
	char: 8;
};

struct eight {
	long int l;
};

struct unaligned_in {
	char c;
	struct eight p;
} __attribute__((packed));

union u {
	char c;
	unsigned char __pad_0[16];
};

union odd {
	char c;
	int i;
	unsigned char __pad_0[5];
} __attribute__((packed));
)");
}

TEST_CASE("btf header: bit-fields") {
    btf::Writer w;
    TypeId c = w.add_int("unsigned char", 1, false), i = w.add_int("int", 4, true), l = w.add_int("long int", 8, true);
    TypeId flag = w.add_int("_Bool", 1, {.bits = 8, .is_bool = true});
    TypeId mode = w.add_enum("mode", 4, {{"M", 0}});
    w.add_struct("plain", 8, {{"a", i, 0, 3}, {"b", i, 3, 29}, {"c", i, 32, 1}, {"d", c, 40}});
    w.add_struct("holes", 16, {{"a", i, 2, 3}, {"b", i, 32, 4}, {"m", mode, 36, 4}, {"f", flag, 40, 1}, {"z", l, 64, 40}});
    w.add_struct("jump", 8, {{"a", i, 0, 30}, {"b", i, 32, 5}});
    w.add_struct("crossing", 6, {{"a", i, 0, 30}, {"b", i, 30, 10}, {"c", c, 40}});
    w.add_struct("end", 8, {{"a", i, 0, 1}});
    // Old style: an INT of three bits that begins at bit 2 of its own.
    TypeId three = w.add_int("int", 4, {.bits = 3, .bit_offset = 2, .is_signed = true});
    w.add_struct("old", 4, {{"a", three, 0}, {"b", three, 8}});
    CHECK(header_of(w) == R"(
enum mode {
	M = 0,
};

struct plain {
	int a: 3;
	int b: 29;
	int c: 1;
	unsigned char d;
};

struct holes {
	long long: 2;
	int a: 3;
	long long: 27;
	int b: 4;
	enum mode m: 4;
	_Bool f: 1;
	long int z: 40;
};

struct jump {
	int a: 30;
	int b: 5;
};

struct crossing {
	int a: 30;
	int b: 10;
	unsigned char c;
} __attribute__((packed));

struct end {
	int a: 1;
	int: 31;
	int: 32;
};

struct old {
	int: 2;
	int a: 3;
	int: 5;
	int b: 3;
};
)");
}

TEST_CASE("btf header: names that are taken, names that aren't C") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    w.add_struct("s", 4, {{"a", i, 0}});
    w.add_struct("s", 8, {{"a", i, 0}, {"b", i, 32}});
    w.add_struct("s___2", 4, {{"c", i, 0}});
    w.add_fwd("s");
    w.add_fwd("s", true);
    w.add_typedef("s", i); // another set of names
    w.add_typedef("t", i);
    w.add_typedef("t", w.add_ptr(i));
    w.add_enum("e1", 4, {{"A", 0}, {"t", 1}});
    w.add_enum("e2", 4, {{"A", 5}});
    w.add_struct("core::Option<u8>", 4, {{"__0", i, 0}});
    w.add_struct("x; evil", 8, {{"int", i, 0}, {"*/ #error", i, 32}});
    w.add_typedef("__builtin_va_list", i);
    TypeId u32 = w.add_int("u32", 4, false), odd = w.add_int("u24", 3, false), quad = w.add_float("long double", 16);
    TypeId b = w.add_int("bool", 1, {.bits = 8, .is_bool = true});
    w.add_struct("ints", 24, {{"q", quad, 0}, {"u", u32, 128}, {"o", odd, 160}, {"b", b, 184}});
    CHECK(header_of(w) == R"(
struct s {
	int a;
};

struct s___2 {
	int a;
	int b;
};

struct s___2___2 {
	int c;
};
struct s;
union s___4;
typedef int s;
typedef int t;
typedef int *t___2;

enum e1 {
	A = 0,
	t___3 = 1,
};

enum e2 {
	A___2 = 5,
};

struct core__Option_u8_ {
	int __0;
};

struct x__evil {
	int int_;
	int ____error;
};
typedef int __builtin_va_list_;
typedef struct { unsigned char bytes[16]; } long_double;
typedef unsigned int u32;
typedef struct { unsigned char bytes[3]; } u24;
typedef _Bool bool;

struct ints {
	long_double q;
	u32 u;
	u24 o;
	bool b;
};
)");
}

TEST_CASE("btf header: enums of other sizes, extreme values") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    w.add_enum("byte", 1, {{"B", 255}});
    w.add_enum("two", 2, {{"W", 1}});
    w.add_enum("negative", 4, {{"LOW", INT32_MIN}}, true);
    w.add_enum("high", 4, {{"HIGH", 0xffffffff}});
    w.add_enum("small64", 8, {{"S64", 1}});
    w.add_enum("min64", 8, {{"MIN64", INT64_MIN}, {"M1", -1}}, true);
    w.add_enum("max64", 8, {{"MAX64", -1}});
    TypeId declared = w.add_enum("declared", 4, {});
    w.add_struct("user", 8, {{"e", declared, 0}, {"i", i, 32}});
    CHECK(header_of(w) == R"(
enum byte {
	B = 255,
} __attribute__((mode(QI)));

enum two {
	W = 1,
} __attribute__((mode(HI)));

enum negative {
	LOW = -2147483648,
};

enum high {
	HIGH = 4294967295,
};

enum small64 {
	S64 = 1,
} __attribute__((mode(DI)));

enum min64 {
	MIN64 = -9223372036854775807LL - 1,
	M1 = -1,
};

enum max64 {
	MAX64 = 18446744073709551615ULL,
};

struct user {
	unsigned int e;
	int i;
};
)");
}
