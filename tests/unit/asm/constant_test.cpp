// Programs that are constants: their bytes, by static_assert, and that they lie in memory which nobody can write.
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "asm/constant.h"
#include "asm/print.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr auto kAnswer = constant_program([](ConstantCode &f) { f.ret(42); });
static_assert(kAnswer.size() == 2);
static_assert(kAnswer[0] == Insn{0xb7, 0, 0, 0, 42});
static_assert(kAnswer[1] == Insn{0x95, 0, 0, 0, 0});

// A bit of everything: wide numbers, memory, both widths, blocks, a loop, a call.
constexpr auto kEverything = constant_program([](ConstantCode &f) {
    const auto sum = f.stack<uint64_t>();
    f.mov(r6, r1);
    f.store<uint64_t>(sum, 0);
    f.load_imm64(r2, 0x1122334455667788);
    f.loop(r7, 4, [&] {
        f.load<uint64_t>(r1, sum);
        f.add(r1, r7);
        f.store<uint64_t>(sum, r1);
    });
    f.call<0>(helper::get_prandom_u32);
    f.if_(w0 > 7, [&] { f.mov(w0, 1); }).else_([&] { f.mov(w0, 2); });
    f.if_(!(r0 & 4), [&] { f.neg(r0); });
    f.exit();
});
static_assert(kEverything[0] == Insn{0xbf, 6, 1, 0, 0});
static_assert(kEverything[1] == Insn{0x7a, 10, 0, -8, 0});
static_assert(kEverything[2] == Insn{0x18, 2, 0, 0, 0x55667788} && kEverything[3] == Insn{0, 0, 0, 0, 0x11223344});
static_assert(kEverything[5] == Insn{0x35, 7, 0, 5, 4}, "if r7 >= 4 goto +5");
static_assert(kEverything[10] == Insn{0x05, 0, 0, -6, 0}, "goto -6");

// Constants of the program may be computed.
constexpr auto kPowers = constant_program([](ConstantCode &f) {
    f.mov(r0, 0);
    for (int i = 0; i < 5; ++i) f.add(r0, runtime(1 << i));
    f.exit();
});
static_assert(kPowers.size() == 7 && kPowers[5].imm == 16);

// Blocks whose every way returns: nothing leads behind them, so nothing has to stand there.
constexpr auto kBothReturn = constant_program([](ConstantCode &f) {
    f.if_(r1 == 0, [&] { f.ret(1); }).else_([&] { f.if_(r1 == 1, [&] { f.ret(2); }).else_([&] { f.ret(3); }); });
});
static_assert(kBothReturn.size() == 8 && kBothReturn[7] == Insn{0x95, 0, 0, 0, 0});
static_assert(kBothReturn[0] == Insn{0x55, 1, 0, 2, 0}, "if r1 != 0 goto +2");
constexpr auto kRoundReturns = constant_program([](ConstantCode &f) {
    f.loop(r6, 4, [&] { f.if_(r1 == 0, [&] { f.ret(1); }).else_([&] { f.ret(2); }); });
    f.ret(3);
});
static_assert(kRoundReturns.size() == 9 && kRoundReturns[1] == Insn{0x35, 6, 0, 5, 4}, "if r6 >= 4 goto +5");
// One way that goes on is enough, and so is a label that jumps from further down come to.
constexpr auto kOneReturns = constant_program([](ConstantCode &f) {
    f.if_(r1 == 0, [&] { f.ret(1); }).else_([&] { f.mov(r0, 2); });
    f.exit();
});
static_assert(kOneReturns.size() == 5);
constexpr auto kFromBelow = constant_program([](ConstantCode &f) {
    const auto first = f.label(), last = f.label();
    f.jump(last);
    f.bind(first);
    f.ret(1);
    f.bind(last);
    f.jump(first);
});
static_assert(kFromBelow.size() == 4 && kFromBelow[3] == Insn{0x05, 0, 0, -3, 0}, "goto -3");

} // namespace

TEST_CASE("constant programs print as assembly") {
    const Unit unit = constant_unit("all", "socket", kEverything);
    CHECK(print(unit.functions[0]) == R"(.program all "socket"
    r6 = r1
    *(u64 *)(r10 - 8) = 0
    r2 = 1234605616436508552 ll
    r7 = 0
L1:
    if r7 >= 4 goto L2
    r1 = *(u64 *)(r10 - 8)
    r1 += r7
    *(u64 *)(r10 - 8) = r1
    r7 += 1
    goto L1
L2:
    call bpf_get_prandom_u32
    if w0 <= 7 goto L3
    w0 = 1
    goto L4
L3:
    w0 = 2
L4:
    if r0 & 4 goto L5
    r0 = -r0
L5:
    exit
)");
}

TEST_CASE("constant programs lie in read-only memory") {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    const auto address = reinterpret_cast<uintptr_t>(kEverything.data());
    bool found = false;
    while (std::getline(maps, line)) {
        std::istringstream words(line);
        uintptr_t from = 0, to = 0;
        char dash = 0;
        std::string rights;
        words >> std::hex >> from >> dash >> to >> rights;
        if (address < from || address >= to) continue;
        found = true;
        INFO(line);
        CHECK(rights.find('w') == std::string::npos);
    }
    CHECK(found);
}
