// Reading BTF that the writer made, BTF that is cut or lies, and BTF of kernels newer than this reader.
#include "runtime/btf/btf.h"

#include <algorithm>

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/btf/samples.h"

using namespace rawbpf;
using namespace rawbpf::test;
using btf::Btf;
using btf::Kind;

namespace {

/// Reads everything there is to read; only that nothing goes wrong on the way matters.
void read_everything(const Btf &btf) {
    for (btf::TypeId id = 0; id <= btf.end_id(); ++id) {
        auto type = btf.type(id);
        (void)btf.resolve(id);
        (void)btf.size_of(id);
        if (!type) continue;
        for (uint32_t i = 0; i < std::min(type->vlen, 1000u); ++i) {
            (void)btf.member(*type, i);
            (void)btf.enum_value(*type, i);
            (void)btf.param(*type, i);
            (void)btf.secinfo(*type, i);
        }
        (void)btf.array(*type);
        (void)btf.int_encoding(*type);
        (void)btf.var_linkage(*type);
        (void)btf.decl_tag_component(*type);
    }
    (void)btf.find("task_struct");
    (void)btf.find_all("int");
    (void)btf.find_flavours("task_struct");
}

} // namespace

TEST_CASE("btf: the bytes are where the documentation says") {
    btf::Writer w;
    CHECK(w.add_int("int", 4, true) == 1);
    CHECK(w.add_ptr(1) == 2);
    const unsigned char expected[] = {
        0x9f, 0xeb, 1,   0,   24, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28, 0, 0, 0, 5, 0, 0, 0, // header
        1,    0,    0,   0,   0,  0, 0, 1, 4, 0, 0, 0, 32, 0, 0, 1,                          // int: signed, 32 bits
        0,    0,    0,   0,   0,  0, 0, 2, 1, 0, 0, 0,                                       // ptr to 1
        0,    'i',  'n', 't', 0,
    };
    std::vector<std::byte> bytes = w.finish();
    REQUIRE(bytes.size() == sizeof expected);
    CHECK(std::memcmp(bytes.data(), expected, sizeof expected) == 0);
}

TEST_CASE("btf: every kind is read back, in either byte order") {
    for (bool swapped : {false, true}) {
        CAPTURE(swapped);
        std::vector<std::byte> bytes = sample_btf();
        if (swapped) swap_btf(bytes);
        auto parsed = Btf::parse(bytes, "sample");
        REQUIRE(parsed);
        const Btf &b = *parsed;
        CHECK(b.first_id() == 1);
        CHECK(b.end_id() == id::count);
        CHECK(b.type(0)->kind == Kind::void_);

        auto integer = b.type(id::int_);
        CHECK(integer->name == "int");
        CHECK(integer->kind == Kind::int_);
        CHECK(integer->size_or_type == 4);
        CHECK(b.int_encoding(*integer).bits == 32);
        CHECK(b.int_encoding(*integer).is_signed);
        CHECK(!b.int_encoding(*integer).is_bool);
        auto boolean = b.type(id::bool_);
        CHECK(b.int_encoding(*boolean).is_bool);
        CHECK(!b.int_encoding(*boolean).is_signed);

        auto task = b.type(id::task);
        CHECK(task->name == "task_struct");
        CHECK(task->vlen == 5);
        CHECK(task->size_or_type == 48);
        CHECK(b.member(*task, 0)->name == "pid");
        CHECK(b.member(*task, 1)->bit_offset == 64);
        CHECK(b.member(*task, 1)->type == id::task_ptr);
        CHECK(b.member(*task, 1)->bit_size == 0);
        auto beyond = b.member(*task, 5);
        REQUIRE(!beyond);
        CHECK(beyond.error().context ==
              format("sample: BTF type {} (struct task_struct): there is no part 5; it has 5", +id::task));
        auto wrong = b.member(*integer, 0);
        REQUIRE(!wrong);
        CHECK(wrong.error().context == format("sample: BTF type {} is of kind int, not struct", +id::int_));

        auto flags = b.type(id::flags);
        CHECK(flags->kind_flag);
        CHECK(b.member(*flags, 1)->bit_offset == 3);
        CHECK(b.member(*flags, 1)->bit_size == 5);
        CHECK(b.member(*flags, 2)->bit_offset == 32);
        CHECK(b.member(*flags, 2)->bit_size == 0);

        auto state = b.type(id::state);
        CHECK(b.enum_value(*state, 0)->name == "DEAD");
        CHECK(b.enum_value(*state, 0)->value == ~uint64_t{0});
        CHECK(b.enum_value(*state, 1)->value == 7);
        auto big = b.type(id::big);
        CHECK(big->kind == Kind::enum64);
        CHECK(b.enum_value(*big, 0)->value == 0x123456789abcdef0);

        auto numbers = b.array(*b.type(id::numbers));
        CHECK(numbers.element == id::int_);
        CHECK(numbers.index == id::int_);
        CHECK(numbers.count == 10);
        auto proto = b.type(id::proto);
        CHECK(proto->size_or_type == id::int_);
        CHECK(b.param(*proto, 0)->name == "task");
        CHECK(b.param(*proto, 0)->type == id::task_ptr);
        CHECK(b.param(*proto, 1)->type == 0);
        auto func = b.type(id::func);
        CHECK(func->vlen == 1);
        CHECK(func->size_or_type == id::proto);
        CHECK(b.var_linkage(*b.type(id::var)) == 1);
        auto data = b.type(id::data);
        CHECK(b.secinfo(*data, 0)->type == id::var);
        CHECK(b.secinfo(*data, 0)->offset == 16);
        CHECK(b.secinfo(*data, 0)->size == 4);
        CHECK(b.decl_tag_component(*b.type(id::tag)) == -1);
        CHECK(b.type(id::tag)->name == "kfunc");
        CHECK(b.type(id::user)->kind == Kind::type_tag);

        CHECK(b.resolve(id::const_pid)->id == id::int_);
        CHECK(b.resolve(id::user)->id == id::int_);
        CHECK(*b.size_of(id::const_pid) == 4);
        CHECK(*b.size_of(id::task_ptr) == 8);
        CHECK(*b.size_of(id::matrix) == 3 * 10 * 4);
        CHECK(*b.size_of(id::var) == 4);
        CHECK(*b.size_of(id::real) == 8);
        auto none = b.size_of(id::proto);
        REQUIRE(!none);
        CHECK(none.error().context == format("sample: BTF type {} (func_proto) has no size", +id::proto));
        auto missing = b.type(1000);
        REQUIRE(!missing);
        CHECK(missing.error().context == format("sample: BTF: there is no type 1000; the last is {}", id::count - 1));
    }
}

TEST_CASE("btf: types are found by name, kind and flavour") {
    std::vector<std::byte> bytes = sample_btf();
    for (bool swapped : {false, true}) {
        if (swapped) swap_btf(bytes);
        auto b = Btf::parse(bytes, "sample");
        REQUIRE(b);
        CHECK(b->find("task_struct") == id::task);
        CHECK(b->find("task_struct", Kind::struct_) == id::task);
        CHECK(!b->find("task_struct", Kind::union_));
        CHECK(b->find("pid_t", Kind::typedef_) == id::pid);
        CHECK(!b->find("task")); // a parameter's name, not a type's
        CHECK(!b->find("task_st"));
        CHECK(!b->find("ask_struct"));
        CHECK(!b->find(""));
        CHECK(!b->find(std::string(100000, 'x')));
        CHECK(b->find_all("task_struct") == std::vector<btf::TypeId>{id::task});
        CHECK(b->find_all("state") == std::vector<btf::TypeId>{id::state, id::state_union});
        CHECK(b->find("state", Kind::union_) == id::state_union);
        CHECK(b->find_flavours("task_struct") == std::vector<btf::TypeId>{id::task, id::task_old});
        CHECK(b->find_flavours("task_struct___old").empty());
        CHECK(b->find_flavours("nothing").empty());
        const std::string_view many[] = {"task_struct", "nothing", "state", "task_struct", "int", "x"};
        const auto found = b->find_flavours(many);
        REQUIRE(found.size() == std::size(many));
        for (size_t i = 0; i < std::size(many); ++i) CHECK(found[i] == b->find_flavours(many[i]));
    }
}

TEST_CASE("btf: a name may be the tail of another string") {
    btf::Writer w;
    uint32_t whole = w.string("my_thing");
    uint32_t info = uint32_t{static_cast<uint8_t>(Kind::fwd)} << 24;
    (void)w.add_raw(whole, info, 0, {});
    (void)w.add_raw(whole + 3, info, 0, {});
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "tails");
    REQUIRE(b);
    CHECK(b->find("thing") == 2);
    CHECK(b->find("my_thing") == 1);
    CHECK(b->find_all("thing") == std::vector<btf::TypeId>{2});
}

TEST_CASE("btf: essential names end before exactly three underscores") {
    CHECK(btf::essential_name("task_struct") == "task_struct");
    CHECK(btf::essential_name("task_struct___old") == "task_struct");
    CHECK(btf::essential_name("a___b___c") == "a___b");
    CHECK(btf::essential_name("a____b") == "a____b");
    CHECK(btf::essential_name("___pskb_trim") == "___pskb_trim");
    CHECK(btf::essential_name("a___") == "a___");
    CHECK(btf::essential_name("") == "");
}

TEST_CASE("btf: many types, found wherever they are and whatever surrounds them") {
    for (size_t count : {1, 3, 4, 5, 63, 64, 65, 1000, 40000}) {
        for (bool sorted : {false, true}) {
            std::vector<std::byte> bytes = many_types(count, sorted);
            auto b = Btf::parse(bytes, "many");
            REQUIRE(b);
            CAPTURE(count);
            CAPTURE(sorted);
            CHECK(b->end_id() == count + 1);
            if (count >= 63) CHECK(b->sorted() == sorted);
            CHECK(b->heap_size() < 40 * 1024);
            for (size_t i = 1; i <= count; i += count < 100 ? 1 : count / 97) {
                auto type = b->type(static_cast<btf::TypeId>(i));
                REQUIRE(type);
                REQUIRE(b->find(type->name) == i);
                if (i % 5 == 1) REQUIRE(b->find_all(type->name) == std::vector<btf::TypeId>{static_cast<btf::TypeId>(i)});
            }
            CHECK(!b->find("type_"));
        }
    }
}

TEST_CASE("btf: what only looks sorted still gives right answers") {
    // In order but for one type, out of place where no sample is taken.
    btf::Writer w;
    for (int i = 0; i < 100000; ++i) {
        if (i == 50001) (void)w.add_fwd("aaa");
        (void)w.add_fwd(format("t{:06}", i));
    }
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "almost");
    REQUIRE(b);
    CHECK(b->sorted());
    CHECK(b->find("aaa") == 50002);
    CHECK(b->find("t099999") == 100001);
    CHECK(b->find("t000000") == 1);
    CHECK(!b->find("t100000"));
}

TEST_CASE("btf: a sorted one with equal names gives the first of the kind") {
    btf::Writer w;
    for (int i = 0; i < 200; ++i) (void)w.add_ptr(0);
    for (int i = 0; i < 300; ++i) (void)w.add_fwd("same");
    (void)w.add_typedef("same", 0);
    for (int i = 0; i < 300; ++i) (void)w.add_fwd(format("z{:03}", i));
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "equal");
    REQUIRE(b);
    CHECK(b->sorted());
    CHECK(b->find("same") == 201);
    CHECK(b->find("same", Kind::typedef_) == 501);
    CHECK(b->find_all("same").size() == 301);
}

TEST_CASE("btf: a split BTF goes on where its base ends") {
    std::vector<std::byte> base_bytes = sample_btf();
    auto base = Btf::parse(base_bytes, "base");
    REQUIRE(base);
    btf::Writer w(*base);
    btf::TypeId own = w.add_struct("module_state", 8, {{"task", id::task_ptr, 0}});
    btf::TypeId shared = w.add_raw(base->type(id::task)->name.data() - reinterpret_cast<const char *>(base_bytes.data()) -
                                       (base_bytes.size() - base->strings_end()),
                                   uint32_t{static_cast<uint8_t>(Kind::fwd)} << 24, 0, {}); // its name lies in the base
    std::vector<std::byte> bytes = w.finish();
    auto split = Btf::parse(bytes, "module", &*base);
    REQUIRE(split);
    CHECK(split->first_id() == id::count);
    CHECK(split->end_id() == id::count + 2);
    CHECK(split->find("module_state") == own);
    CHECK(split->find("task_struct") == id::task);
    CHECK(split->find("task_struct", Kind::fwd) == shared);
    CHECK(split->find_all("task_struct") == std::vector<btf::TypeId>{shared}); // the base isn't included
    CHECK(split->member(*split->type(own), 0)->name == "task");
    CHECK(split->type(id::task)->name == "task_struct");
    CHECK(split->type(shared)->name == "task_struct");
    CHECK(*split->size_of(own) == 8);
    CHECK(split->resolve(id::const_pid)->id == id::int_);

    swap_btf(bytes);
    auto mixed = Btf::parse(bytes, "module", &*base);
    REQUIRE(!mixed);
    CHECK(mixed.error().context == "module: BTF: its base base has the other byte order");

    // Modules with 24 bytes of BTF exist: a header and nothing else.
    std::vector<std::byte> empty(base_bytes.begin(), base_bytes.begin() + 24);
    std::memset(empty.data() + 8, 0, 16);
    auto nothing = Btf::parse(empty, "empty", &*base);
    REQUIRE(nothing);
    CHECK(nothing->first_id() == nothing->end_id());
    CHECK(nothing->find("task_struct") == id::task);
}

TEST_CASE("btf: a kind that is unknown here") {
    btf::Writer w;
    (void)w.add_int("int", 4, true);
    const uint32_t extra[] = {1, 2, 3, 4, 5};
    (void)w.add_raw(w.string("future"), 20u << 24 | 2, 0, bytes_of_object(extra)); // 4 + 2 * 8 bytes
    (void)w.add_fwd("after");
    std::vector<std::byte> bytes = w.finish();
    auto plain = Btf::parse(bytes, "new");
    REQUIRE(!plain);
    CHECK(plain.error().kind == Errc::bad_input);
    CHECK(plain.error().context == "new: BTF type 2: offset 0x28: unknown kind 20");

    // With the layout section of Linux 7.2 it is stepped over.
    std::vector<std::byte> described = with_layout(bytes, 20, 4, 8);
    auto b = Btf::parse(described, "new");
    REQUIRE(b);
    CHECK(b->find("after") == 3);
    CHECK(b->type(2)->name == "future");
    CHECK(btf::kind_name(b->type(2)->kind) == "unknown");
    CHECK(!b->size_of(2));
    std::vector<std::byte> odd = with_layout(bytes, 20, 3, 8);
    auto refused = Btf::parse(odd, "new");
    REQUIRE(!refused);
    CHECK(refused.error().context.find("layout of kind 20: sizes 3 and 8 aren't multiples of 4") != std::string::npos);
}

TEST_CASE("btf: cycles and overflows end in errors") {
    btf::Writer w;
    (void)w.add_typedef("a", 2);
    (void)w.add_typedef("b", 1);
    (void)w.add_array(4, 1, 0xffffffff);
    (void)w.add_array(5, 1, 0xffffffff);
    (void)w.add_array(6, 1, 0xffffffff);
    (void)w.add_int("int", 4, true);
    (void)w.add_array(7, 1, 1);
    (void)w.add_typedef("lost", 99);
    std::vector<std::byte> bytes = w.finish();
    auto b = Btf::parse(bytes, "hostile");
    REQUIRE(b);
    CHECK(b->resolve(1).error().context == "hostile: BTF type 1: the types that it refers to have no end after 64 steps");
    CHECK(b->size_of(1).error().context == "hostile: BTF type 1: the types that it refers to have no end after 64 steps");
    CHECK(b->size_of(7).error().context == "hostile: BTF type 7: the types that it refers to have no end after 64 steps");
    CHECK(b->size_of(3).error().context == "hostile: BTF type 3: its size has more than 64 bits");
    CHECK(b->resolve(8).error().context == "hostile: BTF: there is no type 99; the last is 8");
}

TEST_CASE("btf: messages name the file, the type and the offset") {
    std::vector<std::byte> good = sample_btf();
    auto message = [&](size_t at, uint32_t value, size_t size = 4) {
        std::vector<std::byte> bad = good;
        std::memcpy(bad.data() + at, &value, size);
        auto b = Btf::parse(bad, "x.o");
        return b ? std::string("no error") : b.error().context;
    };
    CHECK(message(0, 0, 2) == "x.o: BTF: offset 0x0: not BTF: the magic number is missing");
    CHECK(message(2, 9, 1) == "x.o: BTF: offset 0x2: rawbpf doesn't know version 9");
    CHECK(message(4, 20) == format("x.o: BTF: offset 0x4: the header's length is 20, and must be 24 to {}", good.size()));
    CHECK(message(8, 0xffffffff).starts_with("x.o: BTF: offset 0x8: types: "));
    CHECK(message(20, 0xffffffff).starts_with("x.o: BTF: offset 0x10: strings: "));
    CHECK(message(24 + 4, 0x04ffffff) == format("x.o: BTF type 1: offset 0x18: needs {} bytes, and {} are left",
                                                12 + 12ull * 0xffffff, load<uint32_t>(good.data() + 12)));
    CHECK(message(24 + 4, 0) == "x.o: BTF type 1: offset 0x18: unknown kind 0");
    CHECK(message(24, 0xffffff) == "no error"); // a bad name is found when the type is asked for
    std::vector<std::byte> bad = good;
    const uint32_t far = 0xffffff;
    std::memcpy(bad.data() + 24, &far, 4);
    auto b = Btf::parse(bad, "x.o");
    REQUIRE(b);
    CHECK(b->type(1).error().context ==
          format("x.o: BTF type 1: x.o: BTF strings: offset 0xffffff is past the end ({:#x})", b->strings_end()));
    std::vector<std::byte> open = good;
    open.back() = std::byte{'x'};
    CHECK(Btf::parse(open, "x.o").error().context ==
          format("x.o: BTF: offset {:#x}: no zero byte ends the last string", good.size() - 1));
}

TEST_CASE("btf: bytes cut anywhere are refused") {
    for (bool swapped : {false, true}) {
        std::vector<std::byte> good = sample_btf();
        if (swapped) swap_btf(good);
        for (size_t size = 0; size < good.size(); ++size) {
            std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)); // its own allocation, for ASan
            CHECK(!Btf::parse(cut, "cut"));
        }
    }
}

TEST_CASE("btf: any byte may be wrong") {
    const std::vector<std::byte> good = sample_btf();
    for (size_t i = 0; i < good.size(); ++i)
        for (unsigned flip : {0xffu, 0x01u, 0x80u, 0x10u}) {
            std::vector<std::byte> bad = good;
            bad[i] ^= static_cast<std::byte>(flip);
            if (auto b = Btf::parse(bad, "bad")) read_everything(*b);
        }
}
