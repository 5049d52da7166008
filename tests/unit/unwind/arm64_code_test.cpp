// arm64 functions of a few instructions, in the words that an assembler (llvm-mc) makes of them, and what follows from them.
#include "runtime/unwind/arm64_code.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"
#include "tests/unit/unwind/cfi_elf.h"

using namespace rawbpf;
using namespace rawbpf::unwind;
using test::Cfi;
using test::CfiElf;

namespace {

constexpr uint32_t kNop = 0xd503201f, kRet = 0xd65f03c0;
constexpr uint32_t kPush = 0xa9bf7bfd, kPop = 0xa8c17bfd; // stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16
constexpr uint32_t kSetFp = 0x910003fd;                   // mov x29, sp
constexpr uint32_t kSub80 = 0xd10143ff, kAdd80 = 0x910143ff, kStp48 = 0xa9037bfd;

using Words = std::vector<uint32_t>;

// "0 sp+0, 4 sp+16 fp-16 ra-8", of what an entry at 0x1000 leads to; addresses from there on.
std::string shown(const std::vector<Change> &changes) {
    std::string out;
    for (const Change &change : changes)
        append(out, "{}{:x} {}", out.empty() ? "" : ", ", change.address - 0x1000, test::text(change.rule));
    return out;
}
std::string rules(const Words &words, const std::vector<uint64_t> &entries = {0x1000}) {
    const Arm64Code code{0x1000, std::as_bytes(std::span(words))};
    return shown(arm64_rules(std::span(&code, 1), entries));
}

} // namespace

TEST_CASE("arm64 code: a frame is made and taken away, along each way through the function") {
    //                  cbnz x2, 1f;     ldr x29, [sp], #16            1:
    CHECK(rules({kPush, kSetFp, 0xb5000062, 0xf84107fd, kRet, kNop, kPop, kRet}) ==
          "0 sp+0, 4 sp+16 fp-16 ra-8, 8 fp+16 fp-16 ra-8, 10 sp+0, 14 fp+16 fp-16 ra-8, 1c sp+0");
    // In a larger frame: sub, stp, add x29, sp, #48; ldr x30, ldr x29, add.
    CHECK(rules({kSub80, kStp48, 0x9100c3fd, 0xf9401ffe, 0xf9401bfd, kAdd80, kRet}) ==
          "0 sp+0, 4 sp+80, 8 sp+80 fp-32 ra-24, c fp+32 fp-32 ra-24, 14 sp+80 fp-32 ra-24, 18 sp+0");
    // x30 alone; x30 behind another; x29 before another, and x30 by itself.
    CHECK(rules({0xf81f0ffe, 0xd63f0020, 0xf84107fe, kRet}) == "0 sp+0, 4 sp+16 ra-16, c sp+0");
    CHECK(rules({0xa9be7bfc, 0xa8c27bfc, kRet}) == "0 sp+0, 4 sp+32 ra-24, 8 sp+0");
    CHECK(rules({0xa9be4ffd, 0xf9000bfe, 0xd63f0020}) == "0 sp+0, 4 sp+32 fp-32, 8 sp+32 fp-32 ra-16");
    // 4096 bytes more; and what sp is set back to from x29.
    CHECK(rules({kPush, kSetFp, 0xd14007ff, 0x910003bf, kPop, kRet}) ==
          "0 sp+0, 4 sp+16 fp-16 ra-8, 8 fp+16 fp-16 ra-8, 14 sp+0");
    CHECK(rules({0xd14007ff, kNop, 0x914007ff, kRet}) == "0 sp+0, 4 sp+4096, c sp+0");
}

TEST_CASE("arm64 code: what was lost isn't known again by chance") {
    CHECK(rules({0x1000005e, kNop}) == "0 sp+0, 4 none");                                        // adr x30
    CHECK(rules({0xaa0103fe, kNop}) == "0 sp+0, 4 none");                                        // mov x30, x1
    CHECK(rules({0xaa0103fd, kNop}) == "0 sp+0, 4 none");                                        // mov x29, x1
    CHECK(rules({0xcb2963ff, kNop}) == "0 sp+0, 4 none");                                        // sub sp, sp, x9
    CHECK(rules({0x9100013f, kNop}) == "0 sp+0, 4 none");                                        // mov sp, x9
    CHECK(rules({0x927ced3f, kNop}) == "0 sp+0, 4 none");                                        // and sp, x9, #-16
    CHECK(rules({0x4cdf73e0, kNop}) == "0 sp+0, 4 none");                                        // ld1 {v0.16b}, [sp], #16
    CHECK(rules({0x0e043c1e, kNop}) == "0 sp+0, 4 none");                                        // umov w30, v0.s[0]
    CHECK(rules({0x9e66001d, kNop}) == "0 sp+0, 4 none");                                        // fmov x29, d0
    CHECK(rules({0xd53bd05e, kNop}) == "0 sp+0, 4 none");                                        // mrs x30, tpidr_el0
    CHECK(rules({0xc85ffc3e, kNop}) == "0 sp+0, 4 none");                                        // ldaxr x30, [x1]
    CHECK(rules({0xf821805e, kNop}) == "0 sp+0, 4 none");                                        // swp x1, x30, [x2]
    CHECK(rules({0xf940003e, kNop}) == "0 sp+0, 4 none");                                        // ldr x30, [x1]
    CHECK(rules({0x5800005e, kNop}) == "0 sp+0, 4 none");                                        // ldr x30, a literal
    CHECK(rules({0xd63f0020, kNop}) == "0 sp+0, 4 none");                                        // blr x1
    CHECK(rules({0x043f503f, kNop}) == "0 sp+0, 4 none");                                        // addvl: SVE isn't followed
    CHECK(rules({0x5500001f, kNop}) == "0 sp+0, 4 none");                                        // retaasppc
    CHECK(rules({0x74000020, kNop}) == "0 sp+0, 4 none");                                        // cbgt: not followed
    CHECK(rules({0x9a0123ff, kNop}) == "0 sp+0, 4 none");                                        // addpt sp, sp, x1
    CHECK(rules({0xf83fd036, kNop}) == "0 sp+0, 4 none");                                        // ld64b x22, [x1]
    CHECK(rules({0xd578741c, kNop}) == "0 sp+0, 4 none");                                        // mrrs x28, x29
    CHECK(rules({kPush, 0xaa0103fe, kNop}) == "0 sp+0, 4 sp+16 fp-16 ra-8");                     // it is on the stack
    CHECK(rules({kPush, 0xb9400bfe, kNop}) == "0 sp+0, 4 sp+16 fp-16 ra-8");                     // half of it was loaded
    CHECK(rules({kPush, 0xf90007e1, kNop}) == "0 sp+0, 4 sp+16 fp-16 ra-8, 8 sp+16 fp-16");      // overwritten by x1; x30 has it
    CHECK(rules({kPush, 0xaa0103fe, 0xf90007e1, kNop}) == "0 sp+0, 4 sp+16 fp-16 ra-8, c none"); // and there x30 hasn't
    CHECK(rules({kPush, 0x3d8003fe, 0xaa0103fd}) == "0 sp+0, 4 sp+16 fp-16 ra-8, 8 sp+16");      // 16 bytes over both
    CHECK(rules({kPush, 0xaa0103fe, 0x914007ff, kNop}) == "0 sp+0, 4 sp+16 fp-16 ra-8, c none"); // above the CFA
    // Registers of another kind with the same numbers, and what only reads.
    CHECK(rules({0x6f03f61e, 0x4ebd87dd, 0x4c40a03e, 0xf24003df, 0xeb3e63ff, 0xf9800020, 0xd503233f, 0xd4000001, kNop}) ==
          "0 sp+0");
}

TEST_CASE("arm64 code: where ways meet, what they disagree about is lost; where none leads, nothing is known") {
    // cbnz x2, 1f; push; 1:
    CHECK(rules({0xb5000042, kPush, kNop}) == "0 sp+0, 8 none");
    // b 1f; (nobody comes here); 1: tbz w0, #3, 2f; push; b 3f; 2: sub sp, 16 is another way to the same CFA, but x29 isn't
    // saved.
    CHECK(rules({0x14000002, kNop, kRet}) == "0 sp+0, 4 none, 8 sp+0");
    CHECK(rules({0x36180062, kPush, 0x14000002, 0xd10043ff, kNop}) ==
          "0 sp+0, 8 sp+16 fp-16 ra-8, c sp+0, 10 sp+16"); // x30 and x29 still have theirs
    // A loop whose second round finds x30 gone.
    CHECK(rules({kNop, 0xd63f0020, 0x17fffffe}) == "0 none");
    CHECK(rules({kNop, 0xd61f0020, kNop}) == "0 sp+0, 8 none"); // br
    CHECK(rules({kNop, 0xd4200020, kNop}) == "0 sp+0, 8 none"); // brk
    CHECK(rules({0x14000100, kNop}) == "0 sp+0, 4 none");       // b to another function
}

TEST_CASE("arm64 code: where functions begin") {
    // bl 1f; b .; 1: ret: what is called begins one.
    CHECK(rules({kPush, 0x94000003, kPop, kRet, kNop, kRet}) == "0 sp+0, 4 sp+16 fp-16 ra-8, c sp+0");
    CHECK(rules({kPush, 0x94000003, 0x14000000, kNop, kRet}) == "0 sp+0, 4 sp+16 fp-16 ra-8, c none, 10 sp+0");
    // A call that doesn't return is the last instruction before another function.
    CHECK(rules({kPush, 0x94000003, kNop, kRet}, {0x1000, 0x1008}) == "0 sp+0, 4 sp+16 fp-16 ra-8, 8 sp+0");
    // By its first instruction, at the beginning, behind an end, behind padding; not where sp has moved before.
    CHECK(rules({kPush, kSetFp, kPop, kRet}, {}) == "0 sp+0, 4 sp+16 fp-16 ra-8, 8 fp+16 fp-16 ra-8, c sp+0");
    CHECK(rules({kAdd80, kRet, 0xd28001e0, kPush, kNop}, {}) == "0 none, c sp+0, 10 sp+16 fp-16 ra-8");
    CHECK(rules({kAdd80, kNop, 0xd28001e0, kPush, kNop}, {}) == "0 none, c sp+0, 10 sp+16 fp-16 ra-8");
    CHECK(rules({kSub80, kPush, kNop}, {}) == "0 none");
    CHECK(rules({0xf81f0ffe, kPush, kNop}, {}) == "0 none");
    // Entries that aren't there, or not at an instruction.
    CHECK(rules({kNop}, {0, 0xffc, 0x1002, 0x1004, UINT64_MAX}) == "0 none");
    CHECK(rules({}, {0x1000}).empty());
    const Words one{kPush, 0x14000003}, two{kNop, kRet}; // a branch from one part to the other
    const Arm64Code parts[] = {{0x1000, std::as_bytes(std::span(one))}, {0x1010, std::as_bytes(std::span(two))}};
    const uint64_t entry = 0x1000;
    CHECK(shown(arm64_rules(parts, std::span(&entry, 1))) == "0 sp+0, 4 sp+16 fp-16 ra-8, 10 sp+16 fp-16 ra-8");
    std::vector<uint64_t> calls;
    const Words callers{kNop, 0x94000003, 0x97fffffc, 0x14000002};
    find_arm64_calls({0x1000, std::as_bytes(std::span(callers))}, calls);
    CHECK(calls == std::vector<uint64_t>{0x1010, 0xff8});
}

namespace {

CfiElf arm64_file() {
    CfiElf app;
    app.target.machine = EM_AARCH64;
    app.code.assign(app.code.size(), 0);
    return app;
}
void put(CfiElf &app, uint64_t address, const Words &words) {
    std::memcpy(app.code.data() + (address - 0x10000), words.data(), words.size() * 4);
}
const Cfi::Cie kCie{.program = {0x0c, 31, 0}, .code_align = 4, .column = 30}; // CFA = sp

} // namespace

TEST_CASE("arm64 code: in a table, between functions that have entries") {
    CfiElf app = arm64_file();
    const uint64_t cie = app.eh.cie(kCie);
    app.eh.fde(cie, 0x10000, 16);
    app.eh.fde(cie, 0x10040, 8);
    put(app, 0x10010, {kNop, kPush, kSetFp, kPop, kRet});
    CHECK(test::text(app.table()) == "10000 sp+0, 10010 none, 10014 sp+0, 10018 sp+16 fp-16 ra-8, 1001c fp+16 fp-16 ra-8, "
                                     "10020 sp+0, 10024 none, 10040 sp+0, 10048 none");
    // .init and .fini begin with a nop that is theirs.
    CfiElf begins = arm64_file();
    begins.eh.fde(begins.eh.cie(kCie), 0x10040, 8);
    put(begins, 0x10000, {kNop, kPush, kSetFp, kPop, kRet});
    CHECK(test::text(begins.table()).starts_with("10000 none, 10004 sp+0, 10008 sp+16"));
    begins.code_name = ".fini";
    CHECK(test::text(begins.table()).starts_with("10000 sp+0, 10008 sp+16"));
    // A function that only a symbol names; behind it, what signal handlers return to: mov x8, #139; svc #0.
    put(app, 0x10010, {kNop, kSub80, kAdd80, kRet, 0xd2801168, 0xd4000001, 0, 0});
    elf::Symbol symbol{};
    symbol.value = 0x10014;
    app.symbols = {symbol};
    CHECK(test::text(app.table()) ==
          "10000 sp+0, 10010 none, 10014 sp+0, 10018 sp+80, 1001c sp+0, 1001f signal, 10028 none, 10040 sp+0, 10048 none");
    // The vdso: nothing has an entry.
    app.eh.bytes.clear();
    app.code.resize(0x1000);
    CHECK(test::text(app.table()) == "10000 none, 10014 sp+0, 10018 sp+80, 1001c sp+0, 1001f signal, 10028 none");
    // Another file without entries has no table: it goes by frame pointers.
    put(app, 0x10018, {kNop, kNop});
    put(app, 0x10020, {kNop, kNop});
    CHECK(app.table().rows.empty());
}

TEST_CASE("arm64 code: files that say the same too often are read once") {
    // 12,000 functions that all end at the same place, 256 KB behind: all of it calls what no function covers.
    CfiElf app = arm64_file();
    app.code.resize(0x40000 + 0x1000);
    for (uint64_t at = 0; at < 0x40000; at += 4) put(app, 0x10000 + at, {0x94000000 | static_cast<uint32_t>((0x40000 - at) / 4)});
    put(app, 0x50000, {kSub80, kAdd80, kRet});
    for (uint64_t at = 0x50100; at < 0x50800; at += 4) put(app, at, {kNop});
    const uint64_t cie = app.eh.cie(kCie);
    for (uint64_t i = 0; i < 12000; ++i) app.eh.fde(cie, 0x10000 + i * 4, 0x40000 - i * 4);
    elf::Symbol symbol{};
    symbol.value = 0x50000;
    app.symbols.assign(100'000, symbol);
    const Table table = app.table();
    CHECK(test::text(table.find(0x50000)) + test::text(table.find(0x50004)) + test::text(table.find(0x50008)) == "sp+0sp+80sp+0");
}

TEST_CASE("arm64 code: in a table, where an entry says nothing of prologue and epilogue") {
    CfiElf app = arm64_file();
    const uint64_t cie = app.eh.cie(kCie);
    put(app, 0x10000, {kSub80, kStp48, kNop, 0xa9437bfd, kAdd80, kRet}); // ldp x29, x30, [sp, #48]
    // LLVM's: from 8 on CFA = sp + 80, x30 at CFA - 24, x29 at CFA - 32, to the end.
    app.eh.fde(cie, 0x10000, 24, {0x42, 0x0e, 80, 0x9e, 3, 0x9d, 4});
    CHECK(test::text(app.table()) == "10000 sp+0, 10004 sp+80, 10008 sp+80 fp-32 ra-24, 10014 sp+0, 10018 none");
    // It may say so too early; and of x29 where that is the caller's again: ldp x29, x30, [sp], #16; ret.
    CfiElf early = arm64_file();
    const uint64_t one = early.eh.cie(kCie);
    put(early, 0x10000, {kSub80, kNop, kStp48, 0xa9437bfd, kAdd80, kRet});
    early.eh.fde(one, 0x10000, 24, {0x41, 0x0e, 80, 0x9e, 3, 0x9d, 4});
    put(early, 0x10020, {kPush, kSetFp, kPop, kRet});
    early.eh.fde(one, 0x10020, 16, {0x42, 0x0c, 29, 16, 0x9e, 1, 0x9d, 2});
    CHECK(test::text(early.table()) ==
          "10000 sp+0, 10004 sp+80, 1000c sp+80 fp-32 ra-24, 10014 sp+0, 10018 none, 10020 sp+0, 10024 sp+16 fp-16 ra-8, "
          "10028 fp+16 fp-16 ra-8, 1002c sp+0, 10030 none");
    // GCC's says what is true everywhere, and is believed: also where it says something else.
    CfiElf other = arm64_file();
    const uint64_t second = other.eh.cie(kCie);
    put(other, 0x10000, {kSub80, kStp48, kNop, 0xa9437bfd, kAdd80, kRet});
    other.eh.fde(second, 0x10000, 24, {0x42, 0x0e, 96, 0x9e, 3, 0x9d, 4, 0x43, 0x0e, 0, 0xde, 0xdd});
    CHECK(test::text(other.table()) == "10000 sp+0, 10008 sp+96 fp-32 ra-24, 10014 sp+0, 10018 none");
    // A cold part of a function begins with the frame, which the function has made.
    CfiElf cold = arm64_file();
    const uint64_t third = cold.eh.cie(kCie);
    put(cold, 0x10000, {kNop, 0x94000010, 0x94000011});
    cold.eh.fde(third, 0x10000, 12, {0x0e, 64, 0x9d, 8, 0x9e, 7});
    CHECK(test::text(cold.table()) == "10000 sp+64 fp-64 ra-56, 1000c none");
}
