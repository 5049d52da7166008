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

TEST_CASE("trace calls: a thread that only calls is bounded") {
    Calls calls;
    for (uint32_t i = 0; i < 5000; ++i) CHECK(calls.call(1, i, i) < 1024);
    CHECK(calls.missed_returns() == 5000 - 1024);
    CHECK(calls.returned(1, 4999, 6000).paired);
}
