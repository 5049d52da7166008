// The builder: every misuse is told, with its line, or doesn't compile.
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "asm/map_types.h"
#include "tests/unit/asm/built.h"

using namespace rawbpf;
using test::built;

namespace {

// What must not compile, and with which words, is in refused/cases.txt.
static_assert(std::is_same_v<decltype(r10), const Reg> && std::is_same_v<decltype(r9), const WritableReg>);
template <class T>
concept is_argument = requires(T t) {
    Arg(t);
};
static_assert(is_argument<MapRef> && is_argument<Slot> && is_argument<int> && is_argument<Reg> && is_argument<Mem>);
static_assert(!is_argument<const char *> && !is_argument<Label> && !is_argument<double>);
static_assert(!std::is_default_constructible_v<MapRef> && !std::is_default_constructible_v<Label>);
static_assert(!std::is_copy_constructible_v<Code> && !std::is_copy_constructible_v<Builder>);

/// Only the first complaint.
template <class Body> std::string complaint(Body &&body) {
    std::string text = built(std::forward<Body>(body));
    return text.substr(0, text.find('\n'));
}

} // namespace

TEST_CASE("builder misuse: numbers") {
    CHECK(
        complaint([](Builder &, Code &f) {
            f.mov(r0, runtime(0x1ffffffff));
            f.exit();
        }) ==
        "p: 8589934591 doesn't fit in `rN = number`, which takes -2147483648 to 2147483647; load_imm64 takes any 64-bit number");
    CHECK(complaint([](Builder &, Code &f) {
              f.lsh(r1, runtime(64));
              f.ret(0);
          }) == "p: a shift by 64; it may be 0 to 63");
    CHECK(complaint([](Builder &, Code &f) {
              f.div(w1, runtime(0));
              f.ret(0);
          }) == "p: a division by the constant zero, which the verifier refuses");
    CHECK(complaint([](Builder &, Code &f) {
              f.load<uint64_t>(r0, r1 + runtime(40000));
              f.exit();
          }) == "p: the offset 40000 is out of range; it may be -32768 to 32767");
    CHECK(complaint([](Builder &, Code &f) {
              f.store<uint8_t>(fp - 1, runtime(256));
              f.ret(0);
          }) == "p: 256 doesn't fit in 8 bits, which `*(u8 *)(...) = number` stores");
    CHECK(complaint([](Builder &, Code &f) {
              f.sign_extend(r1, r1, runtime(12));
              f.ret(0);
          }) == "p: sign_extend takes 8, 16 or 32 bits");
    CHECK(complaint([](Builder &, Code &f) {
              f.emit("mov", {.dst = 10, .imm = 1});
              f.ret(0);
          }) == "p: r10 is the frame pointer and can't be written");
    CHECK(complaint([](Builder &, Code &f) {
              f.emit("movv", {.dst = 1, .imm = 1});
              f.ret(0);
          }) == "p: there is no instruction `movv`");
}

TEST_CASE("builder misuse: numbers at the edges, known only here") {
    auto with = [](auto n) {
        return complaint([&](Builder &, Code &f) {
            f.mov(w1, runtime(n));
            f.store<uint32_t>(fp - 4, runtime(n));
            f.ret(0);
        });
    };
    CHECK(with(uint32_t{0xffffffff}).starts_with("    w1 = "));
    CHECK(with(int64_t{INT32_MIN}).starts_with("    w1 = "));
    CHECK(with(int64_t{UINT32_MAX} + 1).starts_with("p: 4294967296 doesn't fit in `wN = number`"));
    CHECK(with(uint64_t{0xffffffffffffffff}).find("doesn't fit") != std::string::npos); // not -1: 64 bits don't fit in 32
    CHECK(complaint([](Builder &, Code &f) {
              f.mov(r0, runtime(uint64_t{0xffffffffffffffff})); // but in 64 they are -1
              f.exit();
          }) == "    r0 = -1");
    CHECK(complaint([](Builder &, Code &f) {
              f.load<uint8_t>(r0, r1 + 32767 + 1);
              f.exit();
          }) == "p: the offset 32768 is out of range; it may be -32768 to 32767");
}

TEST_CASE("builder misuse: registers that hold nothing") {
    CHECK(complaint([](Builder &, Code &f) {
              f.mov(r0, r6);
              f.exit();
          }) == "p: mov_reg reads r6, which nothing has set");
    CHECK(complaint([](Builder &, Code &f) { f.exit(); }) == "p: exit reads r0, which nothing has set");
    CHECK(complaint([](Builder &, Code &f) {
              f.call(helper::ktime_get_ns);
              f.mov(r0, r1);
              f.exit();
          }).starts_with("p: mov_reg reads r1, but bpf_ktime_get_ns on line "));
    CHECK(complaint([](Builder &, Code &f) {
              f.mov(r2, 0);
              f.call(helper::map_update_elem);
              f.ret(0);
          }) ==
          "p: bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags) takes 4 arguments and reads r3, "
          "which nothing has set");
    CHECK(complaint([](Builder &, Code &f) {
              f.call(helper::ringbuf_submit, r1, 0);
              f.exit();
          }).find("returns nothing") != std::string::npos);
    // Set on one way only: no complaint, the verifier sees more than this can.
    CHECK(built([](Builder &, Code &f) {
              f.if_(r1 == 0, [&] { f.mov(r6, 1); });
              f.mov(r0, r6);
              f.exit();
          }).find("reads") == std::string::npos);
}

TEST_CASE("builder misuse: labels") {
    CHECK(complaint([](Builder &, Code &f) {
              auto out = f.label("out");
              f.jump_if(r1 == 0, out);
              f.ret(0);
          }).starts_with("p: the jump goes to label `out` (made on line "));
    CHECK(complaint([](Builder &, Code &f) {
              auto out = f.label("out");
              f.bind(out);
              f.mov(r0, 0);
              f.bind(out);
              f.exit();
          }) == "p: label `out` is bound a second time");
    CHECK(complaint([](Builder &b, Code &f) {
              Code &g = b.function("g", 0);
              auto inside = g.label("inside");
              g.bind(inside);
              g.ret(0);
              f.jump(inside);
              f.ret(0);
          }) == "p: this label belongs to another function");
    CHECK(complaint([](Builder &, Code &f) {
              auto far = f.label("far");
              f.jump_if(r1 == 0, far);
              for (int i = 0; i < 40000; ++i) f.mov(r0, 0);
              f.bind(far);
              f.ret(0);
          }) == "p: the jump is 40000 instructions long; it reaches -32768 to 32767 (label `far`)");
    CHECK(built([](Builder &, Code &f) {
              auto top = f.label("top"), end = f.label("end");
              f.bind(top);
              f.jump_if(r1 == 0, end);
              for (int i = 0; i < 32768; ++i) f.mov(r0, 0);
              f.jump(top);
              f.bind(end);
              f.ret(0);
          }).find("gotol further (label `top`)") != std::string::npos);
    // jump_long does reach.
    CHECK(built([](Builder &, Code &f) {
              auto far = f.label("far");
              f.jump_if(r1 != 0, far);
              auto farther = f.label("farther");
              f.jump_long(farther);
              f.bind(far);
              for (int i = 0; i < 40000; ++i) f.mov(r0, 0);
              f.bind(farther);
              f.ret(0);
          }).find("gotol L2") != std::string::npos);
}

TEST_CASE("builder misuse: the end of a function, and code without a way to it") {
    CHECK(complaint([](Builder &, Code &f) { f.mov(r0, 0); }) == "p: the code runs past its end; it must end with exit or ret");
    CHECK(complaint([](Builder &, Code &) {}) == "p: has no instructions");
    CHECK(complaint([](Builder &, Code &f) {
              f.ret(0);
              f.mov(r1, 0);
              f.exit();
          }) == "p: this code can't be reached: the code before it ends in an exit or a jump, and no label is bound here");
    CHECK(complaint([](Builder &, Code &f) {
              auto end = f.label("end");
              f.jump_if(r1 == 0, end);
              f.ret(0);
              f.bind(end);
          }) == "p: the code runs past its end; it must end with exit or ret");
    // Reached only from below.
    CHECK(built([](Builder &, Code &f) {
              auto first = f.label("first"), last = f.label("last");
              f.jump(last);
              f.bind(first);
              f.ret(1);
              f.bind(last);
              f.jump(first);
          }) == "    goto L2\nL1:\n    r0 = 1\n    exit\nL2:\n    goto L1\n");
}

TEST_CASE("builder misuse: keeping what if_ returns") {
    CHECK(complaint([](Builder &, Code &f) {
              auto kept = f.if_(r1 == 0, [&] { f.mov(r2, 1); });
              f.ret(0);
          }) ==
          "p: the block before hasn't ended: use what if_, lookup and reserve return at once, for .else_, and don't keep it");
    CHECK(built([](Builder &, Code &f) { // nested blocks end in their order
              f.if_(r1 == 0, [&] {
                   f.if_(r1 == 1, [&] { f.mov(r2, 1); }).else_([&] { f.mov(r2, 2); });
                   f.mov(r3, 3);
               }).else_([&] { f.if_(r1 == 2, [&] { f.mov(r2, 4); }); });
              f.ret(0);
          }) == R"(    if r1 != 0 goto L3
    if r1 != 1 goto L1
    r2 = 1
    goto L2
L1:
    r2 = 2
L2:
    r3 = 3
    goto L4
L3:
    if r1 != 2 goto L4
    r2 = 4
L4:
    r0 = 0
    exit
)");
}

TEST_CASE("builder misuse: the stack") {
    CHECK(complaint([](Builder &, Code &f) {
              auto a = f.stack(500, 4, "big");
              auto b = f.stack(16, 8, "more");
              f.address(r2, a);
              f.address(r2, b);
              f.ret(0);
          }) == "p: the stack has 512 bytes: 500 are taken (big 500), 16 more don't fit; larger things live in a per-CPU array");
    CHECK(complaint([](Builder &, Code &f) {
              auto key = f.stack<uint32_t>("key");
              f.store<uint64_t>(key + 0, 1);
              f.ret(0);
          }) == "p: bytes 0 to 7 of stack slot `key`, which has 4");
    CHECK(complaint([](Builder &, Code &f) {
              auto key = f.stack<uint32_t>("key");
              f.load<uint8_t>(r0, key + 4);
              f.exit();
          }) == "p: bytes 4 to 4 of stack slot `key`, which has 4");
    CHECK(complaint([](Builder &, Code &f) {
              auto key = f.stack<uint32_t>("key");
              f.store<uint8_t>(key + -1, 0);
              f.ret(0);
          }) == "p: bytes -1 to -1 of stack slot `key`, which has 4");
    CHECK(complaint([](Builder &, Code &f) {
              (void)f.stack(8, 3);
              f.ret(0);
          }) == "p: a stack slot is aligned to 1, 2, 4 or 8 bytes, not 3");
    CHECK(complaint([](Builder &b, Code &f) {
              Code &g = b.function("g", 0);
              auto mine = f.stack<uint32_t>("mine");
              g.store<uint32_t>(mine, 1);
              g.ret(0);
              f.ret(0);
          }) == "g: this stack slot belongs to another function");
    // Slots align themselves, and fill the stack to the last byte.
    CHECK(built([](Builder &, Code &f) {
              auto a = f.stack(1, 1), b = f.stack(4, 4), c = f.stack(3, 1), d = f.stack(8, 8), e = f.stack(488, 8);
              f.store<uint8_t>(a, 1);
              f.store<uint32_t>(b, 2);
              f.store<uint8_t>(c + 2, 3);
              f.store<uint64_t>(d, 4);
              f.store<uint64_t>(e, 5);
              f.zero(c);
              f.ret(0);
          }) == R"(    *(u8 *)(r10 - 1) = 1
    *(u32 *)(r10 - 8) = 2
    *(u8 *)(r10 - 9) = 3
    *(u64 *)(r10 - 24) = 4
    *(u64 *)(r10 - 512) = 5
    *(u8 *)(r10 - 11) = 0
    *(u16 *)(r10 - 10) = 0
    r0 = 0
    exit
)");
}

TEST_CASE("builder misuse: a ring buffer record that would leak") {
    CHECK(complaint([](Builder &b, Code &f) {
              auto ring = b.ringbuf("ring", 4096);
              f.reserve(r6, ring, 8, [&] { f.ret(0); });
              f.ret(0);
          }) == "p: exit would leak the ring buffer record that is held here; leave the block first, which submits it");
    CHECK(complaint([](Builder &b, Code &f) {
              auto ring = b.ringbuf("ring", 4096);
              auto out = f.label("out");
              f.mov(r7, r1);
              f.reserve(r6, ring, 8, [&] { f.jump_if(r7 == 0, out); });
              f.bind(out);
              f.ret(0);
          }) == "p: the jump to `out` leaves the block that holds a ring buffer record, which would leak");
    CHECK(complaint([](Builder &b, Code &f) {
              auto ring = b.ringbuf("ring", 4096);
              f.reserve(r1, ring, 8, [&] {});
              f.ret(0);
          }) == "p: the record's pointer must survive calls: r6 to r9, not r1");
    CHECK(built([](Builder &b, Code &f) { // jumps inside the block are fine, and so is one record within another
              auto ring = b.ringbuf("ring", 4096);
              f.mov(r8, r1);
              f.reserve(r6, ring, 8, [&] {
                  f.if_(r8 == 0, [&] { f.store<uint64_t>(r6, 0); }).else_([&] { f.store<uint64_t>(r6, 1); });
                  f.reserve(r7, ring, 8, [&] { f.store<uint64_t>(r7, 0); });
              });
              f.ret(0);
          })
              .find("leak") == std::string::npos);
}

TEST_CASE("builder misuse: calls, maps, names") {
    CHECK(complaint([](Builder &b, Code &f) {
              Code &g = b.function("g", 2);
              g.ret(0);
              f.call(g, {r1});
              f.exit();
          }) == "p: `g` takes 2 arguments, not 1");
    CHECK(complaint([](Builder &b, Code &f) {
              Code &other = b.program("socket", "other");
              other.ret(0);
              f.call(other);
              f.ret(0);
          }) == "p: `other` is a program; only what Builder::function makes can be called");
    CHECK(complaint([](Builder &, Code &f) {
              Builder other("other");
              auto map = other.array<uint64_t>("map", 1);
              f.load_map(r1, map);
              f.ret(0);
          }) == "p: this map belongs to another builder");
    CHECK(complaint([](Builder &, Code &f) {
              f.print("%d %d %d %d", {1, 2, 3, 4});
              f.ret(0);
          }) == "p: bpf_trace_printk prints three values at most, not 4");
    auto of_builder = [](auto &&body) {
        return complaint([&](Builder &b, Code &f) {
            body(b);
            f.ret(0);
        });
    };
    CHECK(of_builder([](Builder &b) { (void)b.ringbuf("r", 5000); }) ==
          "ring buffer `r`: 5000 bytes; the size must be a power of two and whole pages, so 4096 at least");
    CHECK(of_builder([](Builder &b) { (void)b.hash<int, int>("a-b", 1); }) ==
          "map `a-b`: the kernel takes only letters, digits, `_` and `.` in names");
    CHECK(of_builder([](Builder &b) { (void)b.hash<int, int>("", 1); }) == "a map needs a name");
    CHECK(of_builder([](Builder &b) {
              (void)b.hash<int, int>("m", 1);
              (void)b.hash<int, int>("m", 1);
          }) == "map `m`: there is a map with this name already");
    CHECK(of_builder([](Builder &b) { (void)b.function("p", 0); }).starts_with("function `p`: there is a function"));
    CHECK(of_builder([](Builder &b) { (void)b.map(2, "m", 8, 8, 1); }) ==
          "map `m`: the key of an array is a 32-bit index, not 8 bytes");
    CHECK(of_builder([](Builder &b) { (void)b.hash<int, int>("m", 0); }) == "map `m`: needs a number of entries");
    CHECK(of_builder([](Builder &b) { (void)b.function("g", 6); }) == "function `g` can't take 6 arguments; there are r1 to r5");
    CHECK(of_builder([](Builder &b) { b.program("", "q").ret(0); }) ==
          "program `q` needs a section, such as \"perf_event\", that says what it attaches to");
}

TEST_CASE("builder misuse: maps of every type, with the keys and the entries that the kernel takes, and with others") {
    // Those for which the kernel takes no max_entries but 0. STRUCT_OPS isn't one: it has 1 (bpf_struct_ops_map_alloc_check()).
    const std::set<std::string_view> storage = {"CGROUP_STORAGE", "PERCPU_CGROUP_STORAGE", "SK_STORAGE",
                                                "INODE_STORAGE",  "TASK_STORAGE",          "CGRP_STORAGE"};
    const std::string accepted = "    r0 = 0";
    for (uint32_t type = 1; type < kMapTypeCount; ++type) {
        const MapTypeRow &row = kMapTypes[type];
        INFO(std::string(row.name));
        const uint32_t key = row.keys == MapKeys::none ? 0 : row.keys == MapKeys::prefix ? 8 : 4;
        const uint32_t value = row.values == MapValues::none ? 0 : 4;
        const auto made = [&](uint32_t key_size, uint32_t entries) {
            return complaint([&](Builder &b, Code &f) {
                (void)b.map(type, "m", key_size, value, entries);
                f.ret(0);
            });
        };
        CHECK(is_storage(type) == storage.contains(row.name));
        CHECK(made(key, storage.contains(row.name) ? 0 : 4096) == accepted);
        if (storage.contains(row.name))
            CHECK(made(key, 1) == "map `m`: a storage map has no number of entries; its values lie at what they belong to");
        else
            CHECK(made(key, 0) == (row.name == "PERF_EVENT_ARRAY" ? accepted : "map `m`: needs a number of entries"));
        if (row.keys == MapKeys::index) CHECK(made(8, 1) == "map `m`: the key of an array is a 32-bit index, not 8 bytes");
    }
    CHECK(complaint([](Builder &b, Code &f) { // newer than the table
              (void)b.map(kMapTypeCount, "m", 8, 8, 1);
              f.ret(0);
          }) == accepted);
}

TEST_CASE("builder: complaints carry the line of the statement, and all of them come at once") {
    Builder b("bad");
    Code &f = b.program("socket", "p");
    const int line = __LINE__;
    f.mov(r0, r7);
    f.lsh(r0, runtime(70));
    f.exit();
    Built result = b.finish();
    CHECK_FALSE(result);
    REQUIRE(result.problems.size() == 2);
    CHECK(result.problems[0].line == line + 1);
    CHECK(result.problems[1].line == line + 2);
    CHECK(result.report().find(":" + std::to_string(line + 2) + ":") != std::string::npos);

    Builder empty("empty");
    CHECK(empty.finish().report() == "unit `empty` has no program\n");
}
