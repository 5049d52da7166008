// Headers: the order of definitions, and BTF that would never end. Whether compilers agree about the layouts is for tests/cli,
// which compiles a whole kernel's.
#include "runtime/btf/c_header.h"

#include "runtime/base/format.h"
#include "runtime/btf/print_raw.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"
#include "tests/unit/btf/header_of.h"
#include "tests/unit/btf/samples.h"

using namespace rawbpf;
using namespace rawbpf::test;
using btf::Btf;
using btf::Kind;
using btf::TypeId;

TEST_CASE("btf header: every kind") {
    std::vector<std::byte> bytes = sample_btf();
    auto b = Btf::parse(bytes, "sample");
    REQUIRE(b);
    auto text = btf::c_header(*b);
    REQUIRE(text);
    CHECK(*text == R"(#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef int pid_t;

enum state {
	DEAD = -1,
	BUSY = 7,
};

struct flags {
	int low: 3;
	int high: 5;
	int rest;
};

struct task_struct {
	pid_t pid;
	struct task_struct *parent;
	enum state state;
	struct flags flags;
	_Bool alive;
	long long: 24;
	long long: 64;
	long long: 64;
};

struct task_struct___old {
	int pid;
	int: 32;
};

union state___2 {
	int as_int;
	struct task_struct *as_ptr;
};

enum big {
	HUGE_VALUE = 1311768467463790320LL,
};
struct other;

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
)");
}

TEST_CASE("btf header: definitions stand before their uses, circles are cut at pointers") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    // struct a { struct b *b; fn_t fn; }; struct b { struct a a; }; typedef int (*fn_t)(struct b *, struct c *)
    TypeId a = w.next_id(), b = a + 1, c = a + 2, b_ptr = a + 3, c_ptr = a + 4, proto = a + 5, proto_ptr = a + 6, fn = a + 7,
           c_t = a + 8, c_t_ptr = a + 9;
    w.add_struct("a", 16, {{"b", b_ptr, 0}, {"fn", fn, 64}});
    w.add_struct("b", 16, {{"a", a, 0}});
    w.add_struct("c", 24, {{"b", b, 0}, {"next", c_t_ptr, 128}});
    CHECK(w.add_ptr(b) == b_ptr);
    w.add_ptr(c);
    w.add_func_proto(i, {{"", b_ptr}, {"c", c_ptr}});
    w.add_ptr(proto);
    w.add_typedef("fn_t", proto_ptr);
    w.add_typedef("c_t", c);
    CHECK(w.add_ptr(c_t) == c_t_ptr);
    CHECK(header_of(w) == R"(struct b;
struct c;
typedef int (*fn_t)(struct b *, struct c *c);

struct a {
	struct b *b;
	fn_t fn;
};

struct b {
	struct a a;
};
typedef struct c c_t;

struct c {
	struct b b;
	c_t *next;
};
)");
    const TypeId only[] = {b};
    CHECK(header_of(w, {.roots = only}).find("struct c {") == std::string::npos);
    CHECK(header_of(w, {.roots = only}).find("struct a {") != std::string::npos);
}

TEST_CASE("btf header: an array's elements are defined first, behind a pointer, too") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    w.add_struct("holder", 8, {{"rows", w.next_id() + 1, 0}});
    w.add_ptr(w.next_id() + 1);
    w.add_array(w.next_id() + 1, i, 3);
    w.add_struct("row", 4, {{"x", i, 0}});
    CHECK(header_of(w) == "\nstruct row {\n\tint x;\n};\n\nstruct holder {\n\tstruct row (*rows)[3];\n};\n");
}

TEST_CASE("btf header: anonymous types are written where they are used, a shared enum gets a tag") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true);
    TypeId once = w.add_enum("", 4, {{"ONCE", 1}}), twice = w.add_enum("", 4, {{"TWICE", 2}});
    TypeId inner = w.add_struct("", 8, {{"e", twice, 0}, {"i", i, 32}});
    TypeId choice = w.add_struct("", 8, {{"in", inner, 0}, {"", inner, 0}}, true);
    w.add_struct("outer", 12, {{"", choice, 0}, {"once", once, 64}});
    w.add_typedef("pair_t", w.add_struct("", 8, {{"a", i, 0}, {"b", i, 32}}));
    w.add_enum("", 4, {{"LONELY", 3}});
    w.add_struct("never_used", 4, {{"named", w.add_enum("", 4, {{"INLINE", 4}}), 0}});
    // -fms-extensions: a member without a name, of a named struct.
    TypeId base = w.add_struct("base", 4, {{"b", i, 0}});
    w.add_struct("derived", 8, {{"", base, 0}, {"d", i, 32}});
    CHECK(header_of(w) == R"(
enum __anonymous_enum_3 {
	TWICE = 2,
};

struct outer {
	union {
		struct {
			enum __anonymous_enum_3 e;
			int i;
		} in;
		struct {
			enum __anonymous_enum_3 e;
			int i;
		};
	};
	enum {
		ONCE = 1,
	} once;
};
typedef struct {
	int a;
	int b;
} pair_t;

struct never_used {
	enum {
		INLINE = 4,
	} named;
};

struct base {
	int b;
};

struct derived {
	struct {
		int b;
	};
	int d;
};

enum {
	LONELY = 3,
};
)");
}

TEST_CASE("btf header: declarations, functions for programs") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true), c = w.add_int("char", 1, true);
    TypeId task = w.add_fwd("task");
    TypeId proto = w.add_func_proto(w.add_ptr(task), {{"pid", i}, {"", 0}});
    TypeId get = w.add_func("bpf_task_get", proto, 1);
    w.add_func("not_for_programs", proto, 1);
    w.add_decl_tag("bpf_kfunc", get, -1);
    w.add_decl_tag("bpf_kfunc", get, -1);
    w.add_decl_tag("else", w.add_func("tagged", proto, 1), -1);
    TypeId const_array = w.add_modifier(Kind::const_, w.add_array(w.add_modifier(Kind::const_, c), i, 4));
    TypeId handlers = w.add_array(w.add_ptr(w.add_func_proto(0, {})), i, 2);
    TypeId const_ptr = w.add_modifier(Kind::const_, w.add_modifier(Kind::volatile_, w.add_ptr(w.add_modifier(Kind::const_, c))));
    w.add_struct("all", 32, {{"name", const_array, 0}, {"handlers", handlers, 64}, {"p", const_ptr, 192}});
    TypeId v = w.add_var("counter", const_ptr, 1);
    CHECK(header_of(w) == R"(struct task;

struct all {
	const char name[4];
	void (*handlers[2])(void);
	const char * const volatile p;
};

#ifndef BPF_NO_KFUNC_PROTOTYPES
#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif

extern struct task *bpf_task_get(int pid, ...) __weak __ksym;
#endif
)");
    CHECK(header_of(w, {.kfuncs = false}).find("bpf_task_get") == std::string::npos);
    const TypeId roots[] = {v, get};
    CHECK(header_of(w, {.roots = roots}) ==
          "extern const char * const volatile counter;\nstruct task;\nextern struct task *bpf_task_get(int pid, ...);\n");
}

TEST_CASE("btf header: what C can't say stands there as a comment") {
    btf::Writer w;
    TypeId i = w.add_int("int", 4, true), none = w.add_fwd("none"), proto = w.add_func_proto(0, {});
    w.add_struct("back", 8, {{"a", i, 32}, {"b", i, 0}});
    w.add_struct("sizeless", 4, {{"n", none, 0}, {"f", proto, 0}, {"v", 0, 0}});
    w.add_struct("moved", 8, {{"a", i, 32}}, true);
    CHECK(header_of(w) == R"(struct none;

struct back {
	int: 32;
	int a;
	/* b, bit 0: begins before the end of the member above */
};

struct sizeless {
	/* n, bit 0: its type has no size */
	/* f, bit 0: its type has no size */
	/* v, bit 0: its type has no size */
	char: 8;
	char: 8;
	char: 8;
	char: 8;
};

union moved {
	/* a, bit 32: doesn't begin at bit 0 */
	unsigned char __pad_0[8];
};
)");
}

TEST_CASE("btf header: a split BTF's own types, and of its base what they need") {
    btf::Writer base;
    TypeId i = base.add_int("int", 4, true);
    TypeId used = base.add_struct("used", 4, {{"i", i, 0}});
    base.add_struct("unused", 4, {{"i", i, 0}});
    const std::vector<std::byte> base_bytes = base.finish();
    auto b = Btf::parse(base_bytes, "vmlinux");
    REQUIRE(b);
    btf::Writer w(*b);
    w.add_struct("own", 4, {{"u", used, 0}});
    const std::vector<std::byte> bytes = w.finish();
    auto split = Btf::parse(bytes, "module", &*b);
    REQUIRE(split);
    auto text = btf::c_header(*split);
    REQUIRE(text);
    CHECK(text->find("struct used {\n\tint i;\n};\n\nstruct own {\n\tstruct used u;\n};\n") != std::string::npos);
    CHECK(text->find("unused") == std::string::npos);
    auto printer = btf::RawPrinter::make(*split);
    REQUIRE(printer);
    std::string raw;
    printer->append(raw, split->first_id());
    CHECK(raw == format("[{}] STRUCT 'own' size=4 vlen=1\n\t'u' type_id={} bits_offset=0\n", split->first_id(), used));
}

TEST_CASE("btf header: BTF without an end is an error") {
    {
        btf::Writer w; // -fms-extensions: a member without a name may be of a struct with one
        w.add_struct("a", 8, {{"", 1, 0}, {"", 1, 0}});
        CHECK(header_of(w) == "test: BTF type 1 (struct): it is nested too deeply");
    }
    {
        btf::Writer w;
        w.add_struct("a", 8, {{"b", 2, 0}});
        w.add_struct("b", 8, {{"a", 1, 0}});
        CHECK(header_of(w) == "test: BTF type 1 (struct): it contains itself");
    }
    {
        btf::Writer w;
        w.add_typedef("t", 1);
        CHECK(header_of(w) == "test: BTF type 1 (typedef): the typedef refers to itself");
    }
    {
        btf::Writer w; // a pointer to itself
        w.add_ptr(1);
        w.add_typedef("t", 1);
        CHECK(header_of(w).find("nested too deeply") != std::string::npos);
    }
    if (!test::slow()) { // 64 MB of text: more than a minute there
        btf::Writer w;   // anonymous structs that each hold the next twice: 2^40 lines
        TypeId i = w.add_int("int", 4, true);
        for (TypeId level = 0; level < 40; ++level)
            w.add_struct("", 8, {{"a", w.next_id() + 1, 0}, {"b", w.next_id() + 1, 0}}, true);
        w.add_typedef("leaf", i);
        w.add_struct("top", 8, {{"x", 2, 0}});
        CHECK(header_of(w).find("no end") != std::string::npos);
    }
    {
        btf::Writer w;
        (void)w.add_int("int", 4, true);
        for (int level = 0; level < 5000; ++level) w.add_struct(format("s{}", level), 4, {{"s", w.next_id() + 1, 0}});
        w.add_struct("last", 4, {{"i", 1, 0}});
        CHECK(header_of(w).find("nested too deeply") != std::string::npos);
    }
    {
        btf::Writer w;
        w.add_struct("a", 8, {{"b", 77, 0}});
        CHECK(header_of(w) == "test: BTF type 1 (struct): a member is of type 77, and there are 1 types and 5 bytes of names");
    }
}

TEST_CASE("btf raw: as bpftool prints it") {
    std::vector<std::byte> bytes = sample_btf();
    auto b = Btf::parse(bytes, "sample");
    REQUIRE(b);
    auto printer = btf::RawPrinter::make(*b);
    REQUIRE(printer);
    std::string out;
    for (TypeId number : {id::int_, id::bool_, id::task_ptr, id::flags, id::state, id::big, id::matrix, id::proto, id::func,
                          id::var, id::data, id::real, id::tag, id::user, id::other})
        printer->append(out, number);
    CHECK(out == R"([1] INT 'int' size=4 bits_offset=0 nr_bits=32 encoding=SIGNED
[2] INT '_Bool' size=1 bits_offset=0 nr_bits=8 encoding=BOOL
[5] PTR '(anon)' type_id=6
[8] STRUCT 'flags' size=8 vlen=3
	'low' type_id=1 bits_offset=0 bitfield_size=3
	'high' type_id=1 bits_offset=3 bitfield_size=5
	'rest' type_id=1 bits_offset=32
[9] ENUM 'state' encoding=SIGNED size=4 vlen=2
	'DEAD' val=-1
	'BUSY' val=7
[11] ENUM64 'big' encoding=UNSIGNED size=8 vlen=1
	'HUGE_VALUE' val=1311768467463790320ULL
[13] ARRAY '(anon)' type_id=12 index_type_id=1 nr_elems=3
[14] FUNC_PROTO '(anon)' ret_type_id=1 vlen=2
	'task' type_id=5
	'(anon)' type_id=0
[15] FUNC 'wake_up' type_id=14 linkage=global
[16] VAR 'counter' type_id=1, linkage=global
[17] DATASEC '.data' size=20 vlen=1
	type_id=16 offset=16 size=4 (VAR 'counter')
[18] FLOAT 'double' size=8
[19] DECL_TAG 'kfunc' type_id=15 component_idx=-1
[20] TYPE_TAG 'user' type_id=21
[23] FWD 'other' fwd_kind=struct
)");
}

TEST_CASE("btf header and listing: any bytes changed or cut give text or an error") {
    const std::vector<std::byte> whole = sample_btf();
    size_t texts = 0, errors = 0;
    auto look = [&](const std::vector<std::byte> &bytes) {
        auto b = Btf::parse(bytes, "sample");
        if (!b) return;
        auto text = btf::c_header(*b);
        ++(text ? texts : errors);
        if (auto printer = btf::RawPrinter::make(*b)) {
            std::string out;
            for (TypeId number = 1; number < b->end_id(); ++number) printer->append(out, number);
        }
    };
    for (size_t cut = 0; cut < whole.size(); ++cut) look({whole.begin(), whole.begin() + static_cast<long>(cut)});
    for (size_t at = 0; at < whole.size(); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            std::vector<std::byte> changed = whole;
            changed[at] ^= std::byte(1 << bit);
            look(changed);
        }
    CHECK(texts > 100);
    CHECK(errors > 100);
}
