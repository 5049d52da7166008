// The builder: what it makes.
#include <string>

#include "tests/unit/asm/built.h"

using namespace rawbpf;
using test::built;

TEST_CASE("builder: a program with a map, a ring buffer and the patterns") {
    struct Event {
        uint64_t time;
        uint32_t pid, unused;
        char comm[16];
    };
    Builder b("hello");
    auto counts = b.hash<uint32_t, uint64_t>("counts", 1024);
    auto events = b.ringbuf("events", 4096);
    Code &f = b.program("perf_event", "on_tick");
    auto pid = f.stack<uint32_t>("pid");
    f.call(helper::get_current_pid_tgid);
    f.rsh(r0, 32);
    f.store<uint32_t>(pid, r0);
    f.lookup(counts, pid, [&] {
         f.mov(r1, 1);
         f.atomic_add<uint64_t>(r0, r1);
     }).else_([&] {
        auto one = f.stack<uint64_t>("one");
        f.store<uint64_t>(one, 1);
        f.call(helper::map_update_elem, counts, pid, one, 0);
    });
    f.reserve(r6, events, sizeof(Event), [&] {
        f.call(helper::ktime_get_ns);
        f.store<uint64_t>(RAWBPF_AT(r6, Event, time), r0);
        f.load<uint32_t>(r1, pid);
        f.store<uint32_t>(RAWBPF_AT(r6, Event, pid), r1);
        f.note("who");
        f.call(helper::get_current_comm, RAWBPF_AT(r6, Event, comm), 16);
    });
    f.ret(0);
    Built result = b.finish();
    INFO(result.report());
    REQUIRE(result);
    PrintStyle numbers;
    numbers.numbers = true;
    CHECK(print(*result, numbers) == R"(# hello
.license "Dual MIT/GPL"
.map counts hash key 4 value 8 entries 1024
.map events ringbuf entries 4096

.program on_tick "perf_event"
     0:  call bpf_get_current_pid_tgid
     1:  r0 >>= 32
     2:  *(u32 *)(r10 - 4) = r0
     3:  r1 = counts ll
     5:  r2 = r10                               # &pid
     6:  r2 += -4
     7:  call bpf_map_lookup_elem
     8:  if r0 == 0 goto L1
     9:  r1 = 1
    10:  lock *(u64 *)(r0 + 0) += r1
    11:  goto L2
L1:
    12:  *(u64 *)(r10 - 16) = 1
    13:  r1 = counts ll
    15:  r2 = r10                               # &pid
    16:  r2 += -4
    17:  r3 = r10                               # &one
    18:  r3 += -16
    19:  r4 = 0
    20:  call bpf_map_update_elem
L2:
    21:  r1 = events ll
    23:  r2 = 32
    24:  r3 = 0
    25:  call bpf_ringbuf_reserve
    26:  r6 = r0
    27:  if r6 == 0 goto L3
    28:  call bpf_ktime_get_ns
    29:  *(u64 *)(r6 + 0) = r0
    30:  r1 = *(u32 *)(r10 - 4)
    31:  *(u32 *)(r6 + 8) = r1
    32:  r1 = r6
    33:  r1 += 16
    34:  r2 = 16
    35:  call bpf_get_current_comm              # who
    36:  r1 = r6
    37:  r2 = 0
    38:  call bpf_ringbuf_submit
L3:
    39:  r0 = 0
    40:  exit
)");
    CHECK(result->functions[0].lines.front().insn == 0);
    CHECK(result->functions[0].lines.front().line > 0);
    CHECK(result->functions[0].lines.front().file.find("builder_test.cpp") != std::string::npos);
    REQUIRE(result->functions[0].refs.size() == 3);
    CHECK(result->functions[0].refs[2].insn == 21);
    CHECK(result->functions[0].refs[2].kind == RefKind::map);
    CHECK(result->functions[0].refs[2].symbol == "events");
    CHECK(result->functions[0].notes.size() == result->functions[0].insns.size());
}

TEST_CASE("builder: arithmetic in both widths, memory, atomics") {
    CHECK(built([](Builder &, Code &f) {
              f.mov(r0, -1);
              f.mov(w2, 0xffffffffu);
              f.add(r0, r1);
              f.sub(w2, w2);
              f.neg(r0);
              f.sign_extend(r3, r0, 16);
              f.to_be(r3, 32);
              f.load_imm64(r4, 0xffffffffffffffff);
              f.store<uint64_t>(fp - 8, r4);
              f.load_signed<int32_t>(r5, fp - 8);
              f.fetch_add<uint32_t>(fp - 8, r5);
              f.exchange<uint64_t>(fp - 8, r5);
              f.compare_exchange<uint64_t>(fp - 8, r5);
              f.load_acquire<uint8_t>(r5, fp - 1);
              f.exit();
          }) == R"(    r0 = -1
    w2 = -1
    r0 += r1
    w2 -= w2
    r0 = -r0
    r3 = (s16)r0
    r3 = be32 r3
    r4 = -1 ll
    *(u64 *)(r10 - 8) = r4
    r5 = *(s32 *)(r10 - 8)
    w5 = atomic_fetch_add((u32 *)(r10 - 8), w5)
    r5 = xchg_64(r10 - 8, r5)
    r0 = cmpxchg_64(r10 - 8, r0, r5)
    w5 = load_acquire((u8 *)(r10 - 1))
    exit
)");
}

TEST_CASE("builder: conditions and blocks") {
    CHECK(built([](Builder &, Code &f) {
              f.mov(r0, 0);
              f.if_(as_signed(w1) < -5, [&] { f.ret(1); });
              f.if_(r1 & 4, [&] { f.add(r0, 1); });
              f.if_(!(r1 & 4), [&] { f.add(r0, 2); });
              f.while_(r0 < 10, [&] { f.add(r0, 3); });
              f.if_(r0 == r1, [&] { f.ret(2); }).else_([&] { f.ret(3); });
          }) == R"(    r0 = 0
    if w1 s>= -5 goto L1
    r0 = 1
    exit
L1:
    if r1 & 4 goto L2
    goto L3
L2:
    r0 += 1
L3:
    if r1 & 4 goto L4
    r0 += 2
L4:
    if r0 >= 10 goto L5
    r0 += 3
    goto L4
L5:
    if r0 != r1 goto L6
    r0 = 2
    exit
L6:
    r0 = 3
    exit
)");
}

TEST_CASE("builder: arguments are moved without losing one") {
    // Rotated by one: a circle of three, and an outsider that comes from r0.
    CHECK(built([](Builder &b, Code &f) {
              Code &g = b.function("g", 5);
              g.ret(0);
              f.mov(r0, 7);
              f.mov(r2, 1);
              f.mov(r3, 2);
              f.call(g, {r2, r3, r1, r0, fp - 8});
              f.exit();
          }) == R"(    r0 = 7
    r2 = 1
    r3 = 2
    r4 = r0
    r5 = r10
    r5 += -8
    r0 = r2
    r2 = r3
    r3 = r1
    r1 = r0
    call g
    exit
.function g
    r0 = 0
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.mov(r2, 5);
              f.call(helper::map_lookup_elem, r2, r1); // swapped
              f.ret(0);
          }) == R"(    r2 = 5
    r0 = r2
    r2 = r1
    r1 = r0
    call bpf_map_lookup_elem
    r0 = 0
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.call(helper::map_lookup_elem, r1 + 8, r1); // r2 first, because r1 is still needed
              f.ret(0);
          }) == R"(    r2 = r1
    r1 += 8
    call bpf_map_lookup_elem
    r0 = 0
    exit
)");
    CHECK(built([](Builder &, Code &f) {
              f.call(helper::csum_update, r1, 0x123456789abcdef0);
              f.ret(0);
          }) == R"(    r2 = 1311768467463790320 ll
    call bpf_csum_update
    r0 = 0
    exit
)");
}

TEST_CASE("builder: globals, callbacks, kernel symbols, fields, functions") {
    Builder b("all");
    auto limit = b.constant<uint64_t>("limit", 42);
    auto total = b.variable<uint64_t[2]>("total", {1, 2});
    Code &f = b.program("socket", "p");
    Code &body = b.function("body", 2);
    body.load_global(r1, total + 8);
    body.mov(r2, 1);
    body.atomic_add<uint64_t>(r1, r2);
    body.ret(0);
    f.mov(r6, r1);
    f.load_global(r1, limit);
    f.load<uint32_t>(r1, r1);
    f.call(helper::loop, r1, body, nullptr, 0);
    f.load_ksym(r1, "bpf_prog_active");
    f.load_field<uint32_t>(r2, r6, "task_struct.tgid");
    f.add_field(r6, "task_struct.comm");
    f.call_kfunc("bpf_task_release", {r6});
    f.ret(0);
    Built result = b.finish();
    INFO(result.report());
    REQUIRE(result);
    CHECK(print(*result) == R"(# all
.license "Dual MIT/GPL"
.map limit array key 4 value 8 entries 1 flags 0x80 read_only contents "\x2a\x00\x00\x00\x00\x00\x00\x00"
.map total array key 4 value 16 entries 1 contents "\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00"

.program p "socket"
    r6 = r1
    r1 = limit + 0 ll
    r1 = *(u32 *)(r1 + 0)
    r2 = body ll
    r3 = 0
    r4 = 0
    call bpf_loop
    r1 = ksym bpf_prog_active ll
    r2 = *(u32 *)(r6 + @task_struct.tgid)
    r6 += @task_struct.comm
    r1 = r6
    call kfunc bpf_task_release
    r0 = 0
    exit

.function body
    r1 = total + 8 ll
    r2 = 1
    lock *(u64 *)(r1 + 0) += r2
    r0 = 0
    exit
)");
    CHECK(result->maps[0].contents == std::vector<uint8_t>{42, 0, 0, 0, 0, 0, 0, 0});
    CHECK(result->maps[0].read_only);
    CHECK_FALSE(result->maps[1].read_only);
    CHECK(result->functions[1].refs[0].addend == 8);
}

TEST_CASE("builder: a global function is told apart, in text as well") {
    const auto text = [](bool global) {
        return built([&](Builder &b, Code &f) {
            Code &g = global ? b.global_function("g", 2) : b.function("g", 2);
            g.ret(0);
            f.call(g, {1, 2});
            f.exit();
        });
    };
    CHECK(text(true) == R"(    r1 = 1
    r2 = 2
    call g
    exit
.function g global 2
    r0 = 0
    exit
)");
    CHECK(text(false).find(".function g\n") != std::string::npos);
    CHECK(built([](Builder &b, Code &f) {
              b.global_function("g", 1, 64).ret(0);
              f.ret(0);
          }).find(".function g global 1 64\n") != std::string::npos);
    CHECK(built([](Builder &b, Code &f) {
              b.global_function("g", 0, 64).ret(0);
              f.ret(0);
          }).find("no argument") != std::string::npos);
    CHECK(built([](Builder &b, Code &f) { // nobody knows what a global function's r0 would be
              b.global_function("g", 0).exit();
              f.ret(0);
          })
              .find("r0") != std::string::npos);
}

TEST_CASE("builder: printing puts the format on the stack") {
    CHECK(built([](Builder &, Code &f) {
              f.print("hi %d\n", {r1});
              f.ret(0);
          }) == "    *(u32 *)(r10 - 8) = 622881128               # \"hi %d\\n\"\n"
                "    *(u32 *)(r10 - 4) = 2660\n"
                "    r2 = 7\n"
                "    r3 = r1\n"
                "    r1 = r10                                    # &format\n"
                "    r1 += -8\n"
                "    call bpf_trace_printk\n"
                "    r0 = 0\n"
                "    exit\n");
}
