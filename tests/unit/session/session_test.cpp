#include "programs/session/session.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/sys/process.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::session;

namespace {

// qemu-user, which runs these tests for other machines, has no clone() with CLONE_PIDFD.
bool starts_commands() {
    const Result<sys::Child> child = sys::Child::spawn({"true"});
    return child || child.error().os != EINVAL;
}

Observed command(std::vector<std::string> words) {
    Observed out;
    out.workload = std::move(words);
    out.as_root = true; // nobody is asked who called sudo
    return out;
}

// Until everything that is observed has ended, a minute at most.
bool ends(Session &session) {
    for (int i = 0; i < 6000; ++i) {
        if (!*session.loop().wait(10)) return false;
        if (*session.loop().over()) return true;
    }
    return false;
}

bool readable(int fd) {
    pollfd event{fd, POLLIN, 0};
    return poll(&event, 1, 0) == 1 && (event.revents & POLLIN) != 0;
}

} // namespace

TEST_CASE("session: a command begins when all is attached, after who waits was told, and its end is told in words") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    int ready[2], output[2];
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    REQUIRE(pipe2(output, O_CLOEXEC) == 0);
    Observed whom = command({"sh", "-c", "echo began; exit 3"});
    whom.ready_fd = ready[1];
    whom.workload_output = output[1];
    Session session(std::move(whom));
    REQUIRE(session.open());
    CHECK(session.child() > 0);
    usleep(20'000);
    CHECK_FALSE(readable(output[0]));
    CHECK_FALSE(readable(ready[0]));
    REQUIRE(session.go());
    CHECK(readable(ready[0]));
    CHECK(ends(session));
    CHECK(readable(output[0]));
    CHECK(session.end() == "exited with status 3");
    CHECK(session.seconds() < 60);
    for (const int fd : {ready[0], ready[1], output[0], output[1]}) close(fd);
}

TEST_CASE("session: at Ctrl-C it waits no more, and tells how a command has ended that the terminal has ended, too") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    volatile std::sig_atomic_t stop = 0;
    Observed whom = command({"sh", "-c", "exit 5"});
    whom.stop = &stop;
    Session session(std::move(whom));
    REQUIRE(session.open());
    REQUIRE(session.go());
    CHECK(ends(session));
    stop = 1;
    CHECK_FALSE(*session.loop().wait(1000));
    CHECK(session.end() == "exited with status 5");
}

TEST_CASE("session: when the time is up, a command that runs on is ended") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    Observed whom = command({"sleep", "100"});
    whom.duration_s = 0.01;
    Session session(std::move(whom));
    REQUIRE(session.open());
    REQUIRE(session.go());
    CHECK_FALSE(ends(session));
    CHECK(session.end() == "was killed by SIGTERM");
}

TEST_CASE("session: processes are observed until the last of them has ended") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    Session first(command({"sleep", "0.02"})), second(command({"sleep", "0.05"}));
    REQUIRE(first.open());
    REQUIRE(second.open());
    Observed whom;
    whom.pids = {first.child(), second.child()};
    Session session(std::move(whom));
    REQUIRE(session.open());
    CHECK(session.child() == -1);
    REQUIRE(session.go());
    CHECK_FALSE(*session.loop().over());
    REQUIRE(first.go());
    size_t ended = 0;
    for (int i = 0; i < 6000 && ended == 0; ++i) {
        REQUIRE(*session.loop().wait(10));
        ended += session.loop().ended().size();
    }
    CHECK(ended == 1);
    CHECK(first.end() == "exited with status 0"); // its parent has taken note: its descriptor may wake once more
    REQUIRE(*session.loop().wait(50));
    CHECK(session.loop().ended().empty());
    CHECK_FALSE(*session.loop().over());
    REQUIRE(second.go());
    CHECK(ends(session));
    CHECK(session.end() == "the processes have ended");
}

TEST_CASE("session: more processes than a process may have files open are observed, and the command keeps its own limit") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    if (before.rlim_max < 256) SKIP("the hard limit of open files is under 256");
    int output[2];
    REQUIRE(pipe2(output, O_CLOEXEC) == 0);
    const rlimit low{64, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0); // until the end: nothing between gives up
    Observed whom = command({"sh", "-c", "ulimit -S -n"});
    whom.workload_output = output[1];
    whom.pids.assign(100, getpid());
    Session session(std::move(whom));
    const Result<void> opened = session.open();
    const Result<void> began = opened ? session.go() : Result<void>();
    const bool ended = opened && began && ends(session);
    CHECK((opened ? std::string() : opened.error().message()) == "");
    CHECK(began);
    CHECK(ended);
    char text[16] = {};
    if (ended) CHECK(read(output[0], text, sizeof(text) - 1) == 3);
    CHECK(std::string(text) == "64\n");
    close(output[0]), close(output[1]);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("session: who isn't there is named") {
    if (!starts_commands()) SKIP("this emulator starts no commands");
    Observed whom;
    whom.pids = {0x3fffffff}; // the kernel's numbers end before
    Session nobody(std::move(whom));
    const Result<void> opened = nobody.open();
    REQUIRE_FALSE(static_cast<bool>(opened));
    CHECK(opened.error().kind == Errc::not_found);
    CHECK(opened.error().message() == "there is no process 1073741823");
    CHECK(nobody.end() == "");
    std::thread other([] {
        Observed thread;
        thread.pids = {static_cast<int>(gettid())};
        Session session(std::move(thread));
        const Result<void> refused = session.open();
        CHECK(!refused);
        if (!refused) CHECK(refused.error().message().find("that is a thread of process") != std::string::npos);
    });
    other.join();

    Session missing(command({"no-such-program-of-rawbpf"}));
    const Result<void> spawned = missing.open();
    const Result<void> began = spawned ? missing.go() : Result<void>();
    const Error *error = !spawned ? &spawned.error() : !began ? &began.error() : nullptr;
    REQUIRE(error != nullptr);
    CHECK(error->kind == Errc::not_found);
}
