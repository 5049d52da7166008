// What the builder makes, loaded and run by this kernel: BPF_PROG_TEST_RUN gives each program one call and its r0.
#include "asm/builder.h"

#include <cstring>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asm/constant.h"
#include "asm/map_types.h"
#include "asm/print.h"
#include "programs/profile/profile_dsl.h"
#include "runtime/base/fail.h"
#include "runtime/events/ring_buffer.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/probes.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/unit_elf.h"
#include "runtime/object/unit_object.h"
#include "runtime/sys/bpf.h"
#include "tests/support/profile_configs.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

/// Finishes, loads; complaints and the verifier's log become the test's.
Result<LoadedObject> loaded(Builder &b) {
    Built built = b.finish();
    if (!built) return fail(Errc::invalid_argument, "{}", built.report());
    const std::string text = print(*built);
    Result<LoadedObject> object = load(TRY(object_of(*built)));
    if (!object) return fail(object.error().kind, "{}\n{}\n{}", object.error().message(), object.error().log, text);
    return object;
}

/// Runs a socket filter once on an empty packet; r0's lower half.
Result<uint32_t> run(const Program &program) {
    unsigned char packet[64] = {};
    sys::ProgTestRunAttr attr;
    attr.prog_fd = static_cast<uint32_t>(program.fd.get());
    if (program.section == "socket") {
        attr.data_in = reinterpret_cast<uintptr_t>(packet);
        attr.data_size_in = sizeof packet;
        attr.repeat = 1;
    }
    TRY(sys::prog_test_run(attr));
    return attr.retval;
}

/// The result of a program that is only this body.
template <class Body> uint32_t result_of(Body &&body) {
    Builder b("test");
    Code &f = b.program("socket", "p");
    body(b, f);
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());
    Result<uint32_t> result = run(object->programs[0]);
    REQUIRE_MESSAGE(result, result.error().message());
    return *result;
}

#define NEEDS_BPF()                                                                                                              \
    if (!has_program_type(BPF_PROG_TYPE_SOCKET_FILTER)) SKIP("needs CAP_BPF")

} // namespace

TEST_CASE("builder, run: arithmetic, memory, conditions") {
    NEEDS_BPF();
    CHECK(result_of([](Builder &, Code &f) { f.ret(42); }) == 42);
    CHECK(result_of([](Builder &, Code &f) {
              f.load_imm64(r0, 0x123456789abcdef0);
              f.rsh(r0, 36);
              f.and_(w0, 0xffffffff);
              f.exit();
          }) == 0x1234567);
    CHECK(result_of([](Builder &, Code &f) {
              f.load_imm64(r1, 0x1122334455667788);
              f.store<uint64_t>(fp - 8, r1);
              f.load<uint16_t>(r0, fp - 6);
              f.to_be(r0, 16);
              f.exit();
          }) == 0x6655);
    CHECK(result_of([](Builder &, Code &f) {
              f.store<uint64_t>(fp - 8, 40);
              f.mov(r1, 2);
              f.atomic_add<uint64_t>(fp - 8, r1);
              f.load<uint64_t>(r0, fp - 8);
              f.exit();
          }) == 42);
    CHECK(result_of([](Builder &, Code &f) { // 10 + 9 + ... + 1
              f.mov(r0, 0);
              f.mov(r1, 10);
              f.while_(r1 != 0, [&] {
                  f.add(r0, r1);
                  f.sub(r1, 1);
              });
              f.exit();
          }) == 55);
    auto compared = [](Condition condition) {
        return result_of([&](Builder &, Code &f) {
            f.mov(r6, -5);
            f.mov(r7, 5);
            f.if_(condition, [&] { f.ret(1); }).else_([&] { f.ret(0); });
        });
    };
    CHECK(compared(r6 > r7) == 1); // unsigned
    CHECK(compared(as_signed(r6) > r7) == 0);
    CHECK(compared(as_signed(r6) < 0) == 1);
    CHECK(compared(r7 & 4) == 1);
    CHECK(compared(!(r7 & 4)) == 0);
    CHECK(compared(r7 & 2) == 0);
    CHECK(compared(!(r7 == 5)) == 0);
    CHECK(compared(!(r7 <= r6)) == 0);
    CHECK(compared(w6 == 0xfffffffbu) == 1);
    CHECK(compared(r6 == -5) == 1);
}

TEST_CASE("builder, run: arguments arrive, however they are shuffled") {
    NEEDS_BPF();
    // digits(a, b, c, d, e) = "abcde" as a number
    auto digits = [](auto &&prepare, std::initializer_list<Arg> arguments) {
        return result_of([&](Builder &b, Code &f) {
            Code &g = b.function("digits", 5);
            g.mov(r0, r1);
            for (Reg reg : {r2, r3, r4, r5}) {
                g.mul(r0, 10);
                g.add(r0, reg);
            }
            g.exit();
            f.mov(r0, 9);
            f.mov(r1, 1);
            f.mov(r2, 2);
            f.mov(r3, 3);
            f.mov(r4, 4);
            f.mov(r5, 5);
            f.mov(r6, 6);
            prepare(f);
            f.call(g, arguments);
            f.exit();
        });
    };
    auto nothing = [](Code &) {};
    CHECK(digits(nothing, {r1, r2, r3, r4, r5}) == 12345);
    CHECK(digits(nothing, {r5, r4, r3, r2, r1}) == 54321);
    CHECK(digits(nothing, {r2, r3, r4, r5, r1}) == 23451);
    CHECK(digits(nothing, {r5, r1, r2, r3, r4}) == 51234);
    CHECK(digits(nothing, {r2, r1, r4, r3, r0}) == 21439); // two circles and an outsider
    CHECK(digits(nothing, {r2, r1, r1, r6, 7}) == 21167);
    CHECK(digits(nothing, {r3, r3, r1, r1, r2}) == 33112);
    CHECK(digits(nothing, {0, 0, r1 + 1, r2 + 2, r3 + 3}) == 246);
}

TEST_CASE("builder, run: lookups, updates and a record, from C++ to the map and back") {
    NEEDS_BPF();
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    struct Event {
        uint64_t one;
        uint32_t two, three;
    };
    Builder b("count");
    auto counts = b.hash<uint32_t, uint64_t>("counts", 16);
    auto events = b.ringbuf("events", 4096);
    Code &f = b.program("socket", "p");
    auto key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 7);
    f.lookup(counts, key, [&] {
         f.mov(r1, 1);
         f.atomic_add<uint64_t>(r0, r1);
     }).else_([&] {
        auto one = f.stack<uint64_t>("one");
        f.store<uint64_t>(one, 1);
        f.call(helper::map_update_elem, counts, key, one, BPF_ANY);
    });
    f.mov(r7, 0);
    f.reserve(r6, events, sizeof(Event), [&] {
         f.store<uint64_t>(RAWBPF_AT(r6, Event, one), 111);
         f.store<uint32_t>(RAWBPF_AT(r6, Event, two), 222);
         f.store<uint32_t>(RAWBPF_AT(r6, Event, three), 333);
     }).else_([&] { f.mov(r7, 1); });
    f.mov(r0, r7);
    f.exit();
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());

    const Program &program = object->programs[0];
    for (int i = 0; i < 5; ++i) CHECK(run(program).value() == 0);
    CHECK(object->find_map("counts")->get<uint32_t, uint64_t>(7).value() == 5);
    Result<RingBuffer> ring = RingBuffer::open(object->find_map("events")->fd(), 4096);
    REQUIRE(ring);
    int records = 0;
    ring->consume([&](Bytes record) {
        ++records;
        REQUIRE(record.size() == sizeof(Event));
        Event event;
        std::memcpy(&event, record.data(), sizeof event);
        CHECK(event.one == 111);
        CHECK(event.two == 222);
        CHECK(event.three == 333);
    });
    CHECK(records == 5);
    uint32_t full = 0;
    for (int i = 0; i < 400 && !full; ++i) full = run(program).value(); // 4096 / (8 + 16) records, then else_
    CHECK(full == 1);
}

TEST_CASE("builder: storage maps, which have no entries, are created") {
    NEEDS_BPF();
    const auto with = [](MapDef def) {
        Builder b("storage");
        (void)b.map(std::move(def));
        b.program("socket", "p").ret(0);
        Built built = b.finish();
        REQUIRE_MESSAGE(built, built.report());
        return std::move(*built);
    };
    const auto has = [](MapType type) { return probe_map_type(uint32_t(type)).support == Support::yes; };
    MapDef def;
    def.name = "m";
    def.value_size = 8;
    if (has(MapType::CGROUP_STORAGE)) {
        def.type = uint32_t(MapType::CGROUP_STORAGE);
        def.key_size = 8; // the cgroup's id
        Result<LoadedObject> object = load(object_of(with(def)).value());
        REQUIRE_MESSAGE(object, object.error().message());
        CHECK(object->find_map("m")->max_entries() == 0);
    }
    // The kernel wants to know the types of these, which a unit has on its way through an object file only.
    def.key_size = 4;
    def.flags = BPF_F_NO_PREALLOC;
    def.key_type = "s32";
    def.value_type = "u64";
    for (MapType type : {MapType::SK_STORAGE, MapType::INODE_STORAGE, MapType::TASK_STORAGE, MapType::CGRP_STORAGE}) {
        if (!has(type)) continue;
        INFO(std::string(map_type_row(uint32_t(type)).name));
        def.type = uint32_t(type);
        const std::vector<std::byte> file = write_object(with(def), nullptr).value();
        Result<LoadedObject> object = load(parse_object(file, "storage").value());
        REQUIRE_MESSAGE(object, object.error().message());
        CHECK(object->find_map("m")->type() == uint32_t(type));
    }
}

TEST_CASE("builder, run: globals, functions, a callback") {
    NEEDS_BPF();
    if (!has_feature(Feature::global_data)) SKIP("needs global data, 5.2");
    if (!has_feature(Feature::bpf_loop)) SKIP("needs bpf_loop, 5.17");
    Builder b("globals");
    auto rounds = b.constant<uint32_t>("rounds", 12);
    auto total = b.variable<uint64_t[2]>("total", {0, 100});
    Code &f = b.program("socket", "p");
    Code &body = b.function("body", 2); // (index, context): total[1] += index
    body.mov(r2, r1);
    body.load_global(r1, total + 8);
    body.atomic_add<uint64_t>(r1, r2);
    body.ret(0);
    f.load_global(r1, rounds);
    f.load<uint32_t>(r1, r1);
    f.call(helper::loop, r1, body, nullptr, 0);
    f.exit();
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());
    CHECK(run(object->programs[0]).value() == 12);
    struct Total {
        uint64_t a, b;
    };
    CHECK(object->find_map("total")->get<uint32_t, Total>(0).value().b == 100 + 66);
    CHECK_FALSE(object->find_map("rounds")->put<uint32_t, uint32_t>(0, 1).has_value()); // frozen
}

TEST_CASE("builder, run: a global function is given an address, and reaches so far and no further") {
    NEEDS_BPF();
    if (!has_feature(Feature::bpf_loop)) SKIP("such addresses need 5.12; the next that is asked for is bpf_loop, 5.17");
    const auto made = [](uint32_t pointed, int64_t reach) {
        Builder b("pointed");
        auto values = b.array<uint64_t[4]>("values", 1);
        Code &f = b.program("socket", "p");
        const Label none = f.label("none");
        const Slot key = f.stack<uint32_t>("key");
        Code &g = b.global_function("g", 1, pointed);
        const Label null = g.label("null");
        g.jump_if(r1 == 0, null);
        g.store<uint64_t>(r1 + runtime(reach), 77);
        g.ret(5);
        g.bind(null);
        g.ret(6);
        f.store<uint32_t>(key, 0);
        f.call(helper::map_lookup_elem, values, key);
        f.jump_if(r0 == 0, none);
        f.mov(r1, r0);
        f.add(r1, 8);
        f.call(g, {r1});
        f.exit();
        f.bind(none);
        f.ret(0);
        return loaded(b);
    };
    Result<LoadedObject> object = made(24, 16);
    REQUIRE_MESSAGE(object, object.error().message());
    CHECK(run(object->programs[0]).value() == 5);
    struct Values {
        uint64_t at[4];
    };
    CHECK(object->find_map("values")->get<uint32_t, Values>(0).value().at[3] == 77);
    CHECK_FALSE(made(24, 24).has_value()); // beyond what the function says
    CHECK_FALSE(made(32, 16).has_value()); // says more than it is given
}

TEST_CASE("builder, run: a kernel structure's field by its BTF name") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF)");
    if (!has_feature(Feature::probe_read_kernel)) SKIP("needs bpf_probe_read_kernel, 5.5");
    Builder b("field");
    auto found = b.array<uint32_t>("found", 1);
    Code &f = b.program("raw_tp", "p");
    auto pid = f.stack<uint32_t>("pid"), key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 0);
    f.call(helper::get_current_task);
    f.mov(r3, r0);
    f.add_field(r3, "task_struct.pid");
    f.call(helper::probe_read_kernel, pid, 4, r3);
    f.call(helper::map_update_elem, found, key, pid, BPF_ANY);
    f.ret(0);
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());
    Result<uint32_t> ran = run(object->programs[0]);
    if (!ran) SKIP("needs BPF_PROG_TEST_RUN of raw tracepoint programs, 5.10");
    CHECK(object->find_map("found")->get<uint32_t, uint32_t>(0).value() == static_cast<uint32_t>(syscall(SYS_gettid)));
}

TEST_CASE("builder, run: loops of three kinds") {
    NEEDS_BPF();
    CHECK(result_of([](Builder &, Code &f) { // 0 + 1 + 2 + 4 + 5 + 6
              f.mov(r0, 0);
              f.loop(r6, 10, [&] {
                  f.if_(r6 == 3, [&] { f.continue_(); });
                  f.if_(r6 == 7, [&] { f.break_(); });
                  f.add(r0, r6);
              });
              f.exit();
          }) == 18);
    if (!has_feature(Feature::bpf_loop)) SKIP("needs bpf_loop, 5.17");
    // It ends by the round and not by the sum: before 6.7 verifiers look at a callback once, and what lies on the stack then is
    // what they take it for ever after.
    CHECK(result_of([](Builder &, Code &f) { // 0 + 1 + ... + 100
              auto sum = f.stack<uint64_t>("sum");
              f.store<uint64_t>(sum, 0);
              f.bpf_loop(1000000, sum, [](Code &g) {
                  g.if_(r1 > 100, [&] { g.break_(); });
                  g.load<uint64_t>(r3, r2);
                  g.add(r3, r1);
                  g.store<uint64_t>(r2, r3);
              });
              f.load<uint64_t>(r0, sum);
              f.exit();
          }) == 5050);
    Builder b("probe"); // may_goto is asked by loading one
    Code &f = b.program("socket", "p");
    f.may_loop([&] { f.break_(); });
    f.ret(0);
    if (!loaded(b)) SKIP("needs may_goto, 6.9");
    CHECK(result_of([](Builder &, Code &f) {
              auto sum = f.stack<uint64_t>("sum");
              f.store<uint64_t>(sum, 0);
              f.may_loop([&] {
                  f.load<uint64_t>(r1, sum);
                  f.add(r1, 3);
                  f.store<uint64_t>(sum, r1);
                  f.if_(r1 > 1000, [&] { f.break_(); });
              });
              f.load<uint64_t>(r0, sum);
              f.exit();
          }) == 1002);
}

TEST_CASE("builder, run: a record that is given back never arrives") {
    NEEDS_BPF();
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    Builder b("discard");
    auto events = b.ringbuf("events", 4096);
    Code &f = b.program("socket", "p");
    f.loop(r7, 6, [&] { // the odd rounds only
        f.reserve(r6, events, 8, [&] {
            f.if_(!(r7 & 1), [&] { f.discard(); });
            f.store<uint64_t>(r6, r7);
        });
    });
    f.ret(0);
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());
    CHECK(run(object->programs[0]).value() == 0);
    Result<RingBuffer> ring = RingBuffer::open(object->find_map("events")->fd(), 4096);
    REQUIRE(ring);
    std::string seen;
    ring->consume([&](Bytes record) {
        uint64_t value = 0;
        REQUIRE(record.size() == sizeof value);
        std::memcpy(&value, record.data(), sizeof value);
        seen += std::to_string(value) + " ";
    });
    CHECK(seen == "1 3 5 ");
}

TEST_CASE("builder, run: a field behind a pointer, user memory, user strings") {
    NEEDS_BPF();
    if (!has_feature(Feature::kernel_btf)) SKIP("needs the kernel's BTF (CONFIG_DEBUG_INFO_BTF)");
    if (!has_feature(Feature::probe_read_kernel)) SKIP("needs bpf_probe_read_kernel, 5.5");
    static const char text[] = "a text of this process";
    static const uint16_t number = 4711;
    (void)*static_cast<const volatile char *>(text); // the helper doesn't wait for a page that isn't there yet
    (void)*static_cast<const volatile uint16_t *>(&number);
    Builder b("reads");
    auto numbers = b.array<uint64_t>("numbers", 3);
    auto texts = b.array<char[16]>("texts", 1);
    Code &f = b.program("raw_tp", "p");
    auto key = f.stack<uint32_t>("key");
    auto value = f.stack<uint64_t>("value");
    auto string = f.stack<char[16]>("string");
    const auto keep = [&](uint32_t index, WritableReg from) {
        f.store<uint64_t>(value, from);
        f.store<uint32_t>(key, runtime(index));
        f.call(helper::map_update_elem, numbers, key, value, BPF_ANY);
    };
    f.zero(string);
    f.call(helper::get_current_task);
    f.mov(r6, r0);
    f.read_field<uint32_t>(r7, r6, "task_struct.group_leader->real_parent->tgid");
    keep(0, r7);
    f.load_imm64(r8, reinterpret_cast<uintptr_t>(&number));
    f.read_user<uint16_t>(r7, r8 + 0);
    keep(1, r7);
    f.load_imm64(r8, reinterpret_cast<uintptr_t>(text));
    f.read_user_string(string, r8);
    f.mov(r7, r0);
    keep(2, r7);
    f.store<uint32_t>(key, 0);
    f.call(helper::map_update_elem, texts, key, string, BPF_ANY);
    f.ret(0);
    Result<LoadedObject> object = loaded(b);
    REQUIRE_MESSAGE(object, object.error().message());
    if (!run(object->programs[0])) SKIP("needs BPF_PROG_TEST_RUN of raw tracepoint programs, 5.10");
    const auto kept = [&](uint32_t index) { return object->find_map("numbers")->get<uint32_t, uint64_t>(index).value(); };
    CHECK(kept(0) == static_cast<uint64_t>(getppid()));
    CHECK(kept(1) == 4711);
    CHECK(kept(2) == 16); // cut to the slot, with its zero
    struct Text {
        char text[16];
    };
    CHECK(std::string(object->find_map("texts")->get<uint32_t, Text>(0).value().text) == "a text of this ");
}

TEST_CASE("builder, run: a program that the compiler made") {
    NEEDS_BPF();
    static constexpr auto kProgram = constant_program([](ConstantCode &f) {
        const auto sum = f.stack<uint64_t>();
        f.store<uint64_t>(sum, 0);
        f.loop(r6, 5, [&] {
            f.load<uint64_t>(r1, sum);
            f.add(r1, r6);
            f.store<uint64_t>(sum, r1);
        });
        f.load<uint64_t>(r0, sum);
        f.if_(r0 != 10, [&] { f.mov(r0, 1); }).else_([&] { f.add(r0, 32); });
        f.exit();
    });
    Result<LoadedObject> object = load(object_of(constant_unit("constant", "socket", kProgram)).value());
    REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    CHECK(run(object->programs[0]).value() == 42);
}

TEST_CASE("builder, load: arguments of traced functions") {
    NEEDS_BPF();
    for (const char *section : {"kprobe/vfs_read", "kretprobe/vfs_read", "tp/syscalls/sys_enter_openat", "raw_tp/sys_enter"}) {
        INFO(section);
        Builder b("arguments");
        Code &f = b.program(section, "p");
        f.mov(r6, r1);
        const std::string_view name(section);
        if (name.starts_with("kretprobe")) {
            f.return_value(r7, r6);
        } else if (name.starts_with("kprobe")) {
            for (int n = 1; n <= 6; ++n) f.argument(r7, r6, n);
        } else {
            for (int n = 1; n <= 6; ++n) f.syscall_argument(r7, r6, n);
        }
        f.ret(0);
        Result<LoadedObject> object = loaded(b);
        if (!object && object.error().kind != Errc::rejected) {
            MESSAGE(std::string(section), ": ", object.error().message()); // a kernel without kprobes, lockdown
            continue;
        }
        CHECK_MESSAGE(object, object.error().message());
    }
}

TEST_CASE("builder, load: printing, packets, and the newer instructions where the kernel has them") {
    NEEDS_BPF();
    CHECK(result_of([](Builder &, Code &f) { // the packet of run() is all zeroes
              f.mov(r6, r1);
              f.load_packet<uint16_t>(12);
              f.add(r0, 3);
              f.exit();
          }) == 3);
    if (has_helper(BPF_PROG_TYPE_RAW_TRACEPOINT, 6)) {
        Builder b("print");
        Code &f = b.program("raw_tp", "p");
        f.mov(r6, 5);
        f.print("rawbpf test %d", {r6});
        f.print("rawbpf: a longer line than the one before, %d %d", {r6, 7});
        f.ret(0);
        Result<LoadedObject> object = loaded(b);
        CHECK_MESSAGE(object, object.error().message());
    }
    auto loads = [](auto &&body) {
        Builder b("newer");
        Code &f = b.program("socket", "p");
        body(f);
        return loaded(b).has_value();
    };
    // 6.6: all of them or none.
    const bool v4 = loads([](Code &f) {
        f.mov(r0, 0x80);
        f.sign_extend(r0, r0, 8);
        f.exit();
    });
    if (v4) {
        CHECK(result_of([](Builder &, Code &f) {
                  f.store<uint64_t>(fp - 8, -2);
                  f.load_signed<int8_t>(r0, fp - 8);
                  f.sdiv(r0, -2);
                  f.mov(r1, 0x1234);
                  f.bswap(r1, 16);
                  f.add(r0, r1);
                  auto end = f.label("end");
                  f.jump_long(end);
                  f.bind(end);
                  f.exit();
              }) == 0x3413);
    }
    const bool ordered = loads([](Code &f) {
        f.store<uint64_t>(fp - 8, 0);
        f.load_acquire<uint64_t>(r0, fp - 8);
        f.exit();
    });
    if (ordered) {
        CHECK(result_of([](Builder &, Code &f) {
                  f.mov(r1, 77);
                  f.store_release<uint32_t>(fp - 4, r1);
                  f.load_acquire<uint32_t>(r0, fp - 4);
                  f.exit();
              }) == 77);
    }
}

TEST_CASE("builder, load: a verifier error points at the C++ line") {
    NEEDS_BPF();
    if (!has_feature(Feature::btf)) SKIP("needs BTF, 4.18");
    Builder b("bad");
    auto map = b.hash<uint32_t, uint64_t>("map", 1); // not an array: newer verifiers know that [0] is there
    Code &f = b.program("socket", "p");
    auto key = f.stack<uint32_t>("key");
    f.store<uint32_t>(key, 0);
    f.call(helper::map_lookup_elem, map, key);
    f.load<uint64_t>(r0, r0); // without asking whether it is null
    const int line = __LINE__ - 1;
    f.exit();
    Built built = b.finish();
    REQUIRE(built);
    Result<LoadedObject> object = load(object_of(*built).value());
    REQUIRE_FALSE(object);
    CHECK(object.error().kind == Errc::rejected);
    const std::string place = "builder_kernel_test.cpp:" + std::to_string(line);
    INFO(object.error().message() << object.error().log);
    CHECK(object.error().message().find(place) != std::string::npos); // newer verifiers write it into their log, too
}

TEST_CASE("profile twin, load: every configuration passes the verifier") {
    NEEDS_BPF();
    if (!has_feature(Feature::ring_buffer)) SKIP("needs ring buffers, 5.8");
    test::each_profile_config([](const ProfileConfig &config, unsigned number) {
        INFO(number);
        Result<LoadedObject> object = load(object_of(profile_unit(config)).value());
        REQUIRE_MESSAGE(object, object.error().message() << object.error().log);
    });
}
