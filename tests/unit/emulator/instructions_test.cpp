// Semantics at their edges: RFC 9669, section 4 and 5. `./dev test` also runs random programs against the kernel's JIT.
#include "tests/unit/emulator/emulated.h"

using namespace rawbpf;
using namespace rawbpf::test;

namespace {

/// dst OP src, both 64-bit registers.
uint64_t compute(std::string_view name, uint64_t dst, uint64_t src) {
    auto wide = [](int reg, uint64_t value) {
        const Encoded e = encode("lddw", {.dst = reg, .imm = static_cast<int64_t>(value)});
        return std::pair(e.insn, e.second);
    };
    const auto [a, b] = wide(0, dst);
    const auto [c, d] = wide(3, src);
    return run({a, b, c, d, i(name, {.dst = 0, .src = 3}), i("exit")}).value();
}
uint64_t compute(std::string_view name, uint64_t dst) {
    const Encoded e = encode("lddw", {.dst = 0, .imm = static_cast<int64_t>(dst)});
    return run({e.insn, e.second, i(name, {.dst = 0}), i("exit")}).value();
}

struct State {
    size_t pc;
    uint64_t r[11];
    std::vector<std::byte> memory;
    uint32_t depth;
    friend bool operator==(const State &a, const State &b) {
        return a.pc == b.pc && std::memcmp(a.r, b.r, sizeof a.r) == 0 && a.memory == b.memory && a.depth == b.depth;
    }
};

constexpr uint64_t kMin64 = uint64_t{1} << 63, kMin32 = uint64_t{1} << 31;

} // namespace

TEST_CASE("emulator: arithmetic at the edges") {
    struct Case {
        std::string_view name;
        uint64_t dst, src, expected;
    };
    const Case cases[] = {
        {"add_reg", ~uint64_t{0}, 2, 1},
        {"add32_reg", 0xffffffffffffffff, 2, 1},
        {"sub32_reg", 0, 1, 0xffffffff},
        {"mul_reg", kMin64, ~uint64_t{0}, kMin64},
        {"mul32_reg", 0x100000003, 5, 15},
        {"div_reg", 100, 0, 0},
        {"div32_reg", 0xffffffff00000064, 0x100000000, 0},
        {"mod_reg", 77, 0, 77},
        {"mod32_reg", 0xaaaaaaaa0000004d, 0, 77},
        {"sdiv_reg", kMin64, ~uint64_t{0}, kMin64},
        {"sdiv32_reg", kMin32, 0xffffffff, kMin32},
        {"sdiv_reg", static_cast<uint64_t>(-13), 4, static_cast<uint64_t>(-3)},
        {"sdiv_reg", 9, 0, 0},
        {"smod_reg", kMin64, ~uint64_t{0}, 0},
        {"smod32_reg", kMin32, 0xffffffff, 0},
        {"smod_reg", static_cast<uint64_t>(-13), 4, static_cast<uint64_t>(-1)},
        {"smod32_reg", 0x11111111fffffff3, 0, 0xfffffff3},
        {"lsh_reg", 1, 65, 2},
        {"lsh32_reg", 0xf00000001, 33, 2},
        {"rsh_reg", kMin64, 127, 1},
        {"arsh_reg", kMin64, 63, ~uint64_t{0}},
        {"arsh32_reg", 0x80000000, 31, 0xffffffff},
        {"arsh32_reg", 0x80000000, 63, 0xffffffff},
        {"mov32_reg", 5, 0xaaaaaaaabbbbbbbb, 0xbbbbbbbb},
        {"movsx8", 0, 0x80, 0xffffffffffffff80},
        {"movsx16", 0, 0x7fff, 0x7fff},
        {"movsx32", 0, 0x80000000, 0xffffffff80000000},
        {"movsx8_32", ~uint64_t{0}, 0xff, 0xffffffff},
        {"movsx16_32", ~uint64_t{0}, 0x8000, 0xffff8000},
    };
    for (const Case &c : cases) {
        CAPTURE(c.name);
        CHECK(compute(c.name, c.dst, c.src) == c.expected);
    }
    CHECK(compute("neg", 5) == static_cast<uint64_t>(-5));
    CHECK(compute("neg", kMin64) == kMin64);
    CHECK(compute("neg32", 1) == 0xffffffff);
    CHECK(compute("le16", 0x1122334455667788) == 0x7788);
    CHECK(compute("le64", 0x1122334455667788) == 0x1122334455667788);
    CHECK(compute("be16", 0x1122334455667788) == 0x8877);
    CHECK(compute("be32", 0x1122334455667788) == 0x88776655);
    CHECK(compute("be64", 0x1122334455667788) == 0x8877665544332211);
    CHECK(compute("bswap32", 0x1122334455667788) == 0x88776655);
    // Immediates: what the verifier would refuse runs, with the operand masked; 64-bit operations extend the sign.
    CHECK(run({i("mov", {.dst = 0, .imm = 3}), raw(0x67, 0, 0, 0, 65), i("exit")}).value() == 6);
    CHECK(run({i("mov", {.dst = 0, .imm = 3}), raw(0x37, 0, 0, 0, 0), i("exit")}).value() == 0);
    CHECK(run({i("mov", {.dst = 0, .imm = -1}), i("exit")}).value() == ~uint64_t{0});
    CHECK(run({i("mov32", {.dst = 0, .imm = -1}), i("exit")}).value() == 0xffffffff);
}

TEST_CASE("emulator: branches compare as they say") {
    const uint64_t values[] = {0, 1, 5, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x100000005, kMin64, ~uint64_t{0}};
    struct Case {
        const char *name;
        bool (*wide)(uint64_t, uint64_t);
        bool (*narrow)(uint32_t, uint32_t);
    };
#define CASE(name, expression)                                                                                                   \
    {                                                                                                                            \
        name,                                                                                                                    \
            [](uint64_t a, uint64_t b) {                                                                                         \
                using S [[maybe_unused]] = int64_t;                                                                              \
                return expression;                                                                                               \
            },                                                                                                                   \
            [](uint32_t a, uint32_t b) {                                                                                         \
                using S [[maybe_unused]] = int32_t;                                                                              \
                return expression;                                                                                               \
            }                                                                                                                    \
    }
    const Case cases[] = {
        CASE("jeq", a == b),        CASE("jne", a != b),       CASE("jgt", a > b),         CASE("jge", a >= b),
        CASE("jlt", a < b),         CASE("jle", a <= b),       CASE("jset", (a & b) != 0), CASE("jsgt", S(a) > S(b)),
        CASE("jsge", S(a) >= S(b)), CASE("jslt", S(a) < S(b)), CASE("jsle", S(a) <= S(b)),
    };
#undef CASE
    for (const Case &c : cases)
        for (uint64_t a : values)
            for (uint64_t b : values) {
                const Encoded x = encode("lddw", {.dst = 3, .imm = static_cast<int64_t>(a)});
                const Encoded y = encode("lddw", {.dst = 4, .imm = static_cast<int64_t>(b)});
                auto taken = [&](const Insn &jump) {
                    return run({x.insn, x.second, y.insn, y.second, i("mov", {.dst = 0, .imm = 1}), jump, i("mov"), i("exit")})
                               .value() == 1;
                };
                CHECK(taken(i(std::string(c.name) + "_reg", {.dst = 3, .src = 4, .off = 1})) == c.wide(a, b));
                CHECK(taken(i(std::string(c.name) + "32_reg", {.dst = 3, .src = 4, .off = 1})) ==
                      c.narrow(static_cast<uint32_t>(a), static_cast<uint32_t>(b)));
                const auto imm = static_cast<int32_t>(b);
                CHECK(taken(i(c.name, {.dst = 3, .off = 1, .imm = imm})) == c.wide(a, static_cast<uint64_t>(int64_t{imm})));
                CHECK(taken(i(std::string(c.name) + "32", {.dst = 3, .off = 1, .imm = imm})) ==
                      c.narrow(static_cast<uint32_t>(a), static_cast<uint32_t>(imm)));
            }
}

TEST_CASE("emulator: atomics") {
    std::vector<std::byte> memory(8);
    auto atomic = [&](std::string_view name, uint64_t before, uint64_t operand, uint64_t r0) {
        std::memcpy(memory.data(), &before, 8);
        const Encoded s = encode("lddw", {.dst = 3, .imm = static_cast<int64_t>(operand)});
        const Encoded z = encode("lddw", {.dst = 0, .imm = static_cast<int64_t>(r0)});
        const bool swap = name.starts_with("cmpxchg");
        const uint64_t result = run({s.insn, s.second, z.insn, z.second, i(name, {.dst = 1, .src = 3}),
                                     i("mov_reg", {.dst = swap ? 3 : 0, .src = swap ? 0 : 3}), i("exit")},
                                    memory)
                                    .value();
        uint64_t after;
        std::memcpy(&after, memory.data(), 8);
        return std::pair(after, result); // memory, and what the instruction gave
    };
    const uint64_t a = 0xfffffffff0f0f0f0, b = 0x10f0f0f10;
    CHECK(atomic("atomic_add", a, b, 0) == std::pair(a + b, b));
    CHECK(atomic("atomic_add32", a, b, 0) == std::pair(uint64_t{0xffffffff00000000}, b));
    CHECK(atomic("atomic_or", a, b, 0) == std::pair(a | b, b));
    CHECK(atomic("atomic_and", a, b, 0) == std::pair(a & b, b));
    CHECK(atomic("atomic_xor32", a, b, 0) == std::pair(a ^ (b & 0xffffffff), b));
    CHECK(atomic("atomic_fetch_add", a, b, 0) == std::pair(a + b, a));
    CHECK(atomic("atomic_fetch_add32", a, b, 0) == std::pair(uint64_t{0xffffffff00000000}, uint64_t{0xf0f0f0f0}));
    CHECK(atomic("atomic_fetch_xor", a, b, 0) == std::pair(a ^ b, a));
    CHECK(atomic("xchg", a, b, 0) == std::pair(b, a));
    CHECK(atomic("xchg32", a, b, 0) == std::pair(uint64_t{0xffffffff0f0f0f10}, uint64_t{0xf0f0f0f0}));
    CHECK(atomic("cmpxchg", a, b, a) == std::pair(b, a));
    CHECK(atomic("cmpxchg", a, b, a + 1) == std::pair(a, a));
    CHECK(atomic("cmpxchg32", a, b, 0xaaaaaaaaf0f0f0f0) == std::pair(uint64_t{0xffffffff0f0f0f10}, uint64_t{0xf0f0f0f0}));
    CHECK(run({i("stdw", {.dst = 1, .imm = -2}), i("load_acquire32", {.dst = 3, .src = 1}),
               i("store_release16", {.dst = 1, .src = 3, .off = 4}), i("ldxdw", {.dst = 0, .src = 1}), i("exit")},
              memory)
              .value() == 0xfffffffefffffffe + 0); // the low half of 0xfffffffe went to bytes 4 and 5
}

TEST_CASE("emulator: calls, frames, jumps far and counted") {
    // r6 to r9 are the caller's, whatever the callee does.
    CHECK(run({i("mov", {.dst = 6, .imm = 6}), i("mov", {.dst = 1, .imm = 1}), i("call_local", {.imm = 2}),
               i("add_reg", {.dst = 0, .src = 6}), i("exit"), i("mov", {.dst = 6, .imm = 100}),
               i("mov_reg", {.dst = 0, .src = 1}), i("exit")})
              .value() == 7);
    // Eight frames, and no ninth.
    auto deep = [](int depth) {
        std::vector<Insn> code = {i("mov", {.dst = 1, .imm = depth}),
                                  i("call_local", {.imm = 1}),
                                  i("exit"),
                                  i("jeq", {.dst = 1, .off = 2}),
                                  i("sub", {.dst = 1, .imm = 1}),
                                  raw(0x85, 0, 1, 0, -3),
                                  i("mov", {.dst = 0, .imm = 3}),
                                  i("exit")};
        return run(code);
    };
    CHECK(deep(6).value() == 3);
    REQUIRE(!deep(7));
    CHECK(deep(7).error().message().find("more than 8 functions deep") != std::string::npos);
    // callx: a helper's number, or a function's address.
    CHECK(run({i("mov", {.dst = 2, .imm = 8}), i("callx", {.dst = 2}), i("exit")}).value() == 0);
    CHECK(run({raw(0x18, 2, 4, 0, 3), Insn{}, i("callx", {.dst = 2}), i("exit"), i("mov", {.dst = 0, .imm = 44}), i("exit")})
              .value() == 44);
    CHECK(fault({i("mov", {.dst = 2, .imm = -5}), i("callx", {.dst = 2}), i("exit")}).find("neither a function") !=
          std::string::npos);
    CHECK(run({i("ja32", {.imm = 1}), i("exit"), i("mov", {.dst = 0, .imm = 9}), i("exit")}).value() == 9);
    // may_goto lets a loop run for a while, 8 Mi times, not for ever.
    CHECK(run({i("mov"), i("may_goto", {.off = 2}), i("add", {.dst = 0, .imm = 1}), i("ja", {.off = -3}), i("exit")}).value() ==
          8U << 20);

    ObjectSpec endless = spec_of({i("mov"), i("add", {.dst = 0, .imm = 1}), i("ja", {.off = -2}), i("exit")});
    Result<uint64_t> stopped = run(endless, {}, {.limit = 1000});
    REQUIRE(!stopped);
    CHECK(stopped.error().kind == Errc::busy);
    CHECK(stopped.error().message().find("stopped after 1000 instructions") != std::string::npos);

    auto machine = emulator::Machine::create(endless, {});
    ObjectSpec counted =
        spec_of({i("mov", {.dst = 3, .imm = 10}), i("sub", {.dst = 3, .imm = 1}), i("jne", {.dst = 3, .off = -2}), i("exit")});
    auto counting = emulator::Machine::create(counted).value();
    REQUIRE(counting->set_memory({}));
    REQUIRE(counting->enter(0));
    REQUIRE(counting->run());
    CHECK(counting->executed() == 1 + 20 + 1);
}

TEST_CASE("emulator: old packet loads read the network's order, and end the program behind the end") {
    std::vector<std::byte> packet = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
    CHECK(run({i("ldabsb", {.imm = 4}), i("exit")}, packet).value() == 5);
    CHECK(run({i("ldabsh", {.imm = 1}), i("exit")}, packet).value() == 0x0203);
    CHECK(run({i("ldabsw", {.imm = 0}), i("exit")}, packet).value() == 0x01020304);
    CHECK(run({i("mov", {.dst = 3, .imm = 1}), i("ldindw", {.src = 3}), i("exit")}, packet).value() == 0x02030405);
    CHECK(run({i("mov", {.dst = 0, .imm = 7}), i("ldabsw", {.imm = 2}), i("mov", {.dst = 0, .imm = 8}), i("exit")}, packet)
              .value() == 0);
}

TEST_CASE("emulator: stepping forwards gives what running gives, and backwards what was before") {
    ObjectSpec spec =
        spec_of({i("mov", {.dst = 0, .imm = 1}), i("mov", {.dst = 6, .imm = 5}), i("stxdw", {.dst = 10, .src = 0, .off = -8}),
                 i("call_local", {.imm = 6}), i("ldxdw", {.dst = 3, .src = 10, .off = -8}), i("add_reg", {.dst = 0, .src = 3}),
                 i("stxw", {.dst = 1, .src = 0}), i("sub", {.dst = 6, .imm = 1}), i("jne", {.dst = 6, .off = -7}), i("exit"),
                 i("atomic_add", {.dst = 10, .src = 6, .off = -8}), i("mov_reg", {.dst = 6, .src = 0}),
                 i("add", {.dst = 0, .imm = 2}), i("exit")});
    std::vector<std::byte> memory(8), again(8);
    const uint64_t expected = run(spec, again).value();
    auto machine = emulator::Machine::create(spec, {.stepping = true}).value();
    REQUIRE(machine->set_memory(memory));
    REQUIRE(machine->enter(0));
    auto state = [&] {
        State s{machine->pc(), {}, memory, machine->cpu().depth};
        std::memcpy(s.r, machine->cpu().r, sizeof s.r);
        return s;
    };
    std::vector<State> states;
    while (!machine->ended()) {
        states.push_back(state());
        REQUIRE(machine->step());
    }
    CHECK(machine->cpu().r[0] == expected);
    CHECK(memory == again);
    CHECK(machine->executed() == states.size());
    for (int twice = 0; twice < 2; ++twice) {
        for (size_t n = states.size(); n-- > 0;) {
            REQUIRE(machine->back());
            CHECK(state() == states[n]);
        }
        CHECK(!machine->back());
        for (size_t n = 0; n < states.size(); ++n) {
            CHECK(state() == states[n]);
            REQUIRE(machine->step());
        }
    }
    CHECK(machine->cpu().r[0] == expected);
}
