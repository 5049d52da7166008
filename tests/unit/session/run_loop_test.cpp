// What a run waits for, and when it is over.
#include "programs/session/run_loop.h"

#include <csignal>
#include <cstdint>
#include <utility>
#include <vector>

#include <unistd.h>

#include "runtime/sys/clock.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::session;

namespace {

struct Pipe {
    Fd read, write;
    Pipe() {
        int fds[2];
        REQUIRE(::pipe(fds) == 0);
        read = Fd(fds[0]);
        write = Fd(fds[1]);
    }
    /// Becomes readable, as a pidfd does.
    void end() { REQUIRE(::write(write.get(), "x", 1) == 1); }
};

} // namespace

TEST_CASE("run loop: it waits as usual, but no longer than the run's time") {
    constexpr uint64_t kMs = 1'000'000;
    CHECK(wait_ms(100, 5'000 * kMs, 0, 0) == 100); // without end
    CHECK(wait_ms(100, 10 * kMs, 0, 1'000 * kMs) == 100);
    CHECK(wait_ms(100, 970 * kMs, 0, 1'000 * kMs) == 31); // the last millisecond isn't waited for in pieces
    CHECK(wait_ms(100, 1'000 * kMs - 1, 0, 1'000 * kMs) == 1);
    CHECK(wait_ms(100, 1'000 * kMs, 0, 1'000 * kMs) == 0);
    CHECK(wait_ms(100, 0, 0, UINT64_MAX / 2) == 100); // years
}

TEST_CASE("run loop: over when all targets have ended, each of which is told") {
    RunLoop loop;
    REQUIRE(loop.open());
    Pipe a, b;
    std::vector<Fd> targets;
    targets.push_back(std::move(a.read));
    targets.push_back(std::move(b.read));
    REQUIRE(loop.watch(std::move(targets)));
    loop.begin(sys::monotonic_ns(), 0, nullptr);
    REQUIRE(*loop.wait(0));
    CHECK(loop.ended().empty());
    CHECK_FALSE(*loop.over());
    b.end();
    REQUIRE(*loop.wait(1000));
    REQUIRE(loop.ended().size() == 1);
    CHECK(loop.ended()[0] == 1);
    CHECK_FALSE(*loop.over());
    REQUIRE(*loop.wait(0)); // it is told once
    CHECK(loop.ended().empty());
    a.end();
    REQUIRE(*loop.wait(1000));
    CHECK(*loop.over());
}

TEST_CASE("run loop: the time is up, or somebody says stop") {
    RunLoop loop;
    REQUIRE(loop.open());
    const uint64_t now = sys::monotonic_ns();
    loop.begin(now - 2'000'000'000, 1.5, nullptr);
    CHECK_FALSE(*loop.wait(1000));
    volatile std::sig_atomic_t stop = 0;
    loop.begin(now, 0, &stop);
    CHECK(*loop.wait(0));
    CHECK_FALSE(*loop.over()); // nobody is watched: it goes on
    stop = 1;
    CHECK(loop.told_to_stop());
    CHECK_FALSE(*loop.wait(1000));
}
