// Calls and returns find each other.
#include "programs/trace/calls.h"

#include "tests/support/test.h"

using namespace rawbpf::trace;

TEST_CASE("trace calls: recursion, by depth") {
    Calls calls;
    CHECK(calls.call(1, 7, 100) == 0);
    CHECK(calls.call(1, 7, 110) == 1);
    CHECK(calls.call(2, 7, 115) == 0); // another thread's
    Calls::Returned inner = calls.returned(1, 7, 120), outer = calls.returned(1, 7, 200);
    CHECK(inner.paired);
    CHECK(inner.depth == 1);
    CHECK(inner.duration == 10);
    CHECK(outer.depth == 0);
    CHECK(outer.duration == 100);
    CHECK(outer.children == 10);
    CHECK(calls.returned(2, 7, 125).duration == 10);
    CHECK(calls.missed_returns() == 0);
}

TEST_CASE("trace calls: missed returns and calls are counted, and don't shift the others") {
    Calls calls;
    (void)calls.call(1, 1, 10);
    (void)calls.call(1, 2, 20); // longjmp() leaves it
    (void)calls.call(1, 3, 30); // and this
    const Calls::Returned a = calls.returned(1, 1, 50);
    CHECK(a.paired);
    CHECK(a.depth == 0);
    CHECK(a.missed == 2);
    CHECK(calls.missed_returns() == 2);
    CHECK_FALSE(calls.returned(1, 9, 60).paired);
    CHECK_FALSE(calls.returned(5, 1, 60).paired);
    CHECK(calls.missed_calls() == 2);
    CHECK(calls.call(1, 1, 70) == 0);
}

TEST_CASE("trace calls: another program's beginning ends the calls of the one before, in that thread") {
    Calls calls;
    (void)calls.call(1, 1, 10, 0, true);
    (void)calls.call(1, 2, 20, 0, true);
    (void)calls.call(1, 3, 30); // the kernel's execve: that one returns
    (void)calls.call(2, 1, 15, 0, true);
    (void)calls.call(uint64_t{1} << 63 | 1, 1, 15); // a goroutine
    calls.began_program(1);
    calls.began_program(7); // of which nothing is known
    CHECK(calls.replaced() == 2);
    REQUIRE(calls.open(1).size() == 1);
    CHECK(calls.returned(1, 3, 40).depth == 0);
    CHECK(calls.call(1, 4, 50, 0, true) == 0);
    CHECK(calls.open(2).size() == 1);
    calls.began_program(uint64_t{1} << 63 | 1, true);
    CHECK(calls.replaced() == 3);
    CHECK(calls.still_open().size() == 2);
    CHECK(calls.missed_returns() == 0);
}

TEST_CASE("trace calls: a lost return doesn't leave its call open, where the frames tell") {
    Calls calls;
    CHECK(calls.call(1, 1, 10, 0x7ff0) == 0);
    CHECK(calls.call(1, 2, 20, 0x7fd0) == 1);
    CHECK(calls.call(1, 2, 30, 0x7fd0) == 1); // the first one's return was lost
    CHECK(calls.missed_returns() == 1);
    CHECK(calls.call(1, 2, 35, 0x7fb0) == 2); // this is recursion
    CHECK(calls.call(1, 3, 40, 0x7fb0) == 3); // 2 has jumped to it
    CHECK(calls.call(1, 3, 50, 0x7fe0) == 1); // all but the outermost are gone
    CHECK(calls.missed_returns() == 4);
    CHECK(calls.call(1, 4, 60, 0x7ff0 + (1 << 20)) == 2); // another stack
    CHECK(calls.call(1, 5, 70) == 3);                     // a system call has none
    CHECK(calls.call(1, 5, 80, 0x7000) == 4);
    const Calls::Returned outermost = calls.returned(1, 1, 100);
    CHECK(outermost.paired);
    CHECK(outermost.duration == 90);
    CHECK(outermost.missed == 4);
}

TEST_CASE("trace calls: returns are those of the first 64 calls of a program, which is all that the kernel watches") {
    Calls calls;
    uint64_t time = 0;
    (void)calls.call(1, 1, ++time); // a system call is none of them
    for (uint32_t i = 0; i < 100; ++i) CHECK(calls.call(1, 7, ++time, 0x7fff0000 - 32 * i, true) == i + 1);
    const Calls::Returned first = calls.returned(1, 7, 1000, true);
    CHECK(first.paired);
    CHECK(first.depth == 64);
    CHECK(first.duration == 1000 - 65); // the 64th call's
    CHECK(calls.too_deep() == 36);
    for (uint32_t depth = 63; depth > 0; --depth) CHECK(calls.returned(1, 7, 1001, true).depth == depth);
    CHECK(calls.returned(1, 1, 1002).depth == 0);
    CHECK(calls.missed_returns() == 0);
    CHECK(calls.missed_calls() == 0);
    // Where the next thing seen is a call from further up, those beyond the 64th are told apart, too.
    for (uint32_t i = 0; i < 66; ++i) (void)calls.call(1, 7, ++time, 0x7fff0000 - 32 * i, true);
    CHECK(calls.call(1, 7, ++time, 0x7fff0000, true) == 0);
    CHECK(calls.too_deep() == 38);
    CHECK(calls.missed_returns() == 64);
    const std::vector<std::pair<uint64_t, uint64_t>> open{{1, 1}};
    CHECK((calls.still_open() == open));
}

TEST_CASE("trace calls: a thread that only calls is bounded") {
    Calls calls;
    for (uint32_t i = 0; i < 5000; ++i) CHECK(calls.call(1, i, i) < 1024);
    CHECK(calls.missed_returns() == 5000 - 1024);
    CHECK(calls.returned(1, 4999, 6000).paired);
}
