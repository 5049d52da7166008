// Dead code: branches on known numbers are decided, everything else stays open.
#include "programs/inspect/reach.h"

#include "tests/support/test.h"

using namespace rawbpf;
using inspect::reachable;

namespace {

Insn mov(uint8_t dst, int32_t imm) { return {.code = 0xb7, .dst = dst, .imm = imm}; }
Insn mov32(uint8_t dst, int32_t imm) { return {.code = 0xb4, .dst = dst, .imm = imm}; }
Insn add(uint8_t dst, int32_t imm) { return {.code = 0x07, .dst = dst, .imm = imm}; }
Insn copy(uint8_t dst, uint8_t src) { return {.code = 0xbf, .dst = dst, .src = src}; }
Insn load(uint8_t dst, uint8_t src) { return {.code = 0x79, .dst = dst, .src = src}; }
Insn eq(uint8_t dst, int32_t imm, int16_t off) { return {.code = 0x15, .dst = dst, .off = off, .imm = imm}; }
Insn ne(uint8_t dst, int32_t imm, int16_t off) { return {.code = 0x55, .dst = dst, .off = off, .imm = imm}; }
Insn jump(int16_t off) { return {.code = 0x05, .off = off}; }
Insn helper(int32_t number) { return {.code = 0x85, .imm = number}; }
Insn local(int32_t imm) { return {.code = 0x85, .src = 1, .imm = imm}; }
constexpr Insn kExit{.code = 0x95};
constexpr Insn kPoison{.code = 0x85, .imm = 195896080};

std::string map_of(const std::vector<Insn> &insns) {
    std::string out;
    for (bool reached : reachable(insns)) out += reached ? '+' : '.';
    return out;
}

} // namespace

TEST_CASE("reach: a branch on a known number has one side") {
    CHECK(map_of({mov(1, 0), eq(1, 0, 1), kPoison, kExit}) == "++.+");
    CHECK(map_of({mov(1, 1), eq(1, 0, 1), kPoison, kExit}) == "+++.");
    CHECK(map_of({mov(1, 0), ne(1, 0, 1), jump(1), kPoison, kExit}) == "+++.+");
    CHECK(map_of({mov32(3, -1), {.code = 0x16, .dst = 3, .off = 1, .imm = -1}, kPoison, kExit}) == "++.+"); // 32-bit compare
    CHECK(map_of({mov(2, 5), mov(3, 5), {.code = 0x1d, .dst = 2, .src = 3, .off = 1}, kPoison, kExit}) == "+++.+"); // registers
    CHECK(map_of({mov(1, 3), add(1, 4), {.code = 0x25, .dst = 1, .off = 1, .imm = 6}, kPoison, kExit}) == "+++.+"); // 7 > 6
    CHECK(map_of({mov(1, -1), {.code = 0xc5, .dst = 1, .off = 1, .imm = 0}, kPoison, kExit}) == "++.+");            // signed
    CHECK(map_of({{.code = 0x18, .dst = 1, .imm = 1},
                  {.imm = 1},
                  copy(2, 1),
                  {.code = 0x77, .dst = 2, .imm = 32},
                  eq(2, 1, 1),
                  kPoison,
                  kExit}) == "+++++.+"); // 64 bits
}

TEST_CASE("reach: what is loaded or answered is unknown") {
    CHECK(map_of({load(1, 1), eq(1, 0, 1), kPoison, kExit}) == "++++");
    CHECK(map_of({mov(0, 0), helper(5), eq(0, 0, 1), kPoison, kExit}) == "+++++");
    CHECK(map_of({mov(6, 0), helper(5), eq(6, 0, 1), kPoison, kExit}) == "+++.+"); // kept over calls
    CHECK(map_of({mov(1, 0), {.code = 0xdb, .dst = 10, .src = 1, .off = -8, .imm = 1}, eq(1, 0, 1), kPoison, kExit}) == "+++++");
}

TEST_CASE("reach: where paths meet, only what agrees is known") {
    // r1 = 0 or 1; r2 = 7 on both ways
    CHECK(map_of({load(3, 1), mov(1, 0), mov(2, 7), eq(3, 0, 1), mov(1, 1), eq(2, 7, 1), kPoison, eq(1, 0, 1), kPoison, kExit}) ==
          "++++++.+++");
    // A loop changes its counter: its end is reached.
    CHECK(map_of({mov(1, 0), add(1, 1), ne(1, 100, -2), kExit}) == "++++");
    // An equality that was taken is known behind it.
    CHECK(map_of({load(1, 1), ne(1, 4, 2), eq(1, 4, 1), kPoison, kExit}) == "+++.+");
}

TEST_CASE("reach: functions and callbacks") {
    CHECK(map_of({mov(1, 0), eq(1, 0, 1), local(1), kExit, kPoison, kExit}) == "++.+..");
    CHECK(map_of({local(1), kExit, kPoison, kExit}) == "+++."); // behind a poisoned call nothing is reached
    CHECK(map_of({{.code = 0x18, .dst = 2, .src = 4, .imm = 2}, {}, kExit, mov(0, 0), kExit}) == "+++++");
    CHECK(map_of({{.code = 0x0d, .dst = 1}, kPoison, kExit}) == "+++"); // gotox: anywhere
}

TEST_CASE("reach: broken programs end, too") {
    CHECK(map_of({}) == "");
    CHECK(map_of({jump(-1)}) == "+");
    CHECK(map_of({jump(1000)}) == "+");
    CHECK(map_of({{.code = 0x18, .dst = 1}}) == "+");
    CHECK(map_of({local(INT32_MAX), kExit}) == "++");
    std::vector<Insn> many;
    for (int i = 0; i < 20000; ++i) many.push_back(i % 2 ? ne(1, i, -2) : add(1, 1));
    CHECK(reachable(many).size() == many.size());
}
