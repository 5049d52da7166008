// Starting workloads: stopped until told to go, with the right identity, and nothing left behind.
#include "runtime/sys/process.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys/file.h"
#include "tests/support/fds.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("process: a child waits until it is started, then its status comes back") {
    auto before = test::open_descriptors();
    {
        sys::Child child = sys::Child::spawn({"sh", "-c", "exit 3"}).value();
        usleep(50000);
        CHECK_FALSE(child.poll().value().has_value());
        CHECK(sys::process_exists(child.pid()));
        // It is still us: the exec hasn't happened.
        CHECK(sys::read_link("/proc/" + std::to_string(child.pid()) + "/exe").value() ==
              sys::read_link("/proc/self/exe").value());
        REQUIRE(child.start().has_value());
        pollfd p{child.pidfd(), POLLIN, 0};
        CHECK(poll(&p, 1, 5000) == 1);
        sys::Exit exit = child.wait().value();
        CHECK_FALSE(exit.signalled);
        CHECK(exit.code == 3);
        CHECK(exit.text() == "exited with status 3");
        CHECK(exit.max_rss_bytes > 0);
        CHECK_FALSE(child.start().has_value());
    }
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("process: what can't run says why, and no child stays") {
    auto before = test::open_descriptors();
    Result<sys::Child> missing = sys::Child::spawn({"no-such-program-anywhere"});
    REQUIRE_FALSE(missing.has_value());
    CHECK(missing.error().kind == Errc::not_found);
    {
        const std::string file = "/tmp/rawbpf-not-a-program-" + std::to_string(getpid());
        REQUIRE(close(creat(file.c_str(), 0644)) == 0);
        sys::Child child = sys::Child::spawn({file}).value();
        Result<void> started = child.start();
        REQUIRE_FALSE(started.has_value());
        CHECK(started.error().os == EACCES);
        CHECK(unlink(file.c_str()) == 0);
        CHECK(child.wait().value().code == 127);
    }
    int pid = 0;
    {
        sys::Child child = sys::Child::spawn({"sleep", "100"}).value();
        pid = child.pid();
    }
    CHECK_FALSE(sys::process_exists(pid)); // never started: ended with its owner
    CHECK(test::open_descriptors() == before);
}

namespace {

void make_script(const std::string &path, const char *text, mode_t mode) {
    std::ofstream(path) << text;
    REQUIRE(chmod(path.c_str(), mode) == 0);
}

int status_of(sys::Child child) {
    REQUIRE(child.start().has_value());
    return child.wait().value().code;
}

/// PATH, for as long as this lives.
struct Path {
    std::string before = getenv("PATH");
    explicit Path(const std::string &path) { setenv("PATH", path.c_str(), 1); }
    ~Path() { setenv("PATH", before.c_str(), 1); }
    Path(const Path &) = delete;
    Path &operator=(const Path &) = delete;
};

} // namespace

TEST_CASE("process: a command is found as execvp(3) finds it, before it is started") {
    const test::Folder folder;
    const std::string a = folder.path + "/a", b = folder.path + "/b";
    REQUIRE(chmod(folder.path.c_str(), 0755) == 0);
    REQUIRE(mkdir(a.c_str(), 0755) == 0);
    REQUIRE(mkdir(b.c_str(), 0755) == 0);
    const Path path(a + ":" + b);
    make_script(b + "/text", "exit $(($1 + 1))\n", 0755);
    CHECK(status_of(sys::Child::spawn({"text", "6"}).value()) == 7);
    make_script(a + "/twice", "#!/bin/sh\nexit 1\n", 0644);
    make_script(b + "/twice", "#!/bin/sh\nexit 2\n", 0755);
    CHECK(status_of(sys::Child::spawn({"twice"}).value()) == 2);
    // The interpreter isn't there: the next folder may have another.
    make_script(a + "/broken", "#!/no/such/interpreter\n", 0755);
    make_script(b + "/broken", "#!/bin/sh\nexit 3\n", 0755);
    CHECK(status_of(sys::Child::spawn({"broken"}).value()) == 3);
    {
        sys::Child child = sys::Child::spawn({"twice"}).value();
        REQUIRE(unlink((b + "/twice").c_str()) == 0);
        CHECK(child.start().error().os == EACCES); // of the one that is left
    }
    {
        sys::Child child = sys::Child::spawn({"text"}).value();
        REQUIRE(unlink((b + "/text").c_str()) == 0);
        CHECK(child.start().error().os == ENOENT);
    }
    if (sys::effective_uid() != 0) return;
    sys::User user;
    user.uid = 12345;
    user.gid = 23456;
    make_script(a + "/rights", "#!/bin/sh\nexit 4\n", 0700);
    make_script(b + "/rights", "#!/bin/sh\nexit 5\n", 0755);
    CHECK(status_of(sys::Child::spawn({"rights"}).value()) == 4);
    CHECK(status_of(sys::Child::spawn({"rights"}, user).value()) == 5);
}

TEST_CASE("process: children that wait end with this process, and in any order") {
    {
        sys::Child first = sys::Child::spawn({"sleep", "100"}).value(), second = sys::Child::spawn({"sleep", "100"}).value();
        first = {};
        CHECK(sys::process_exists(second.pid()));
    }
    int told[2];
    REQUIRE(pipe2(told, O_CLOEXEC) == 0);
    const pid_t parent = fork();
    REQUIRE(parent >= 0);
    if (parent == 0) {
        signal(SIGTERM, SIG_IGN); // its children ignore it, too
        const sys::Child first = sys::Child::spawn({"sleep", "100"}).value(),
                         second = sys::Child::spawn({"sleep", "100"}).value();
        const int pids[] = {first.pid(), second.pid()};
        _exit(write(told[1], pids, sizeof pids) == sizeof pids ? 0 : 1);
    }
    int pids[2] = {};
    REQUIRE(read(told[0], pids, sizeof pids) == sizeof pids);
    for (const int pid : pids) {
        const Result<Fd> pidfd = sys::pidfd_open(pid);
        if (!pidfd) continue; // it has ended
        pollfd end{pidfd->get(), POLLIN, 0};
        CHECK(poll(&end, 1, 5000) == 1);
    }
    CHECK(waitpid(parent, nullptr, 0) == parent);
    close(told[0]), close(told[1]);
}

TEST_CASE("process: a stop while it waits changes nothing") {
    sys::Child child = sys::Child::spawn({"sh", "-c", "exit 3"}).value();
    REQUIRE(child.kill(SIGSTOP).has_value());
    usleep(20000);
    REQUIRE(child.kill(SIGCONT).has_value());
    usleep(20000);
    CHECK(sys::read_link("/proc/" + std::to_string(child.pid()) + "/exe").value() == sys::read_link("/proc/self/exe").value());
    CHECK(status_of(std::move(child)) == 3);
}

TEST_CASE("process: killed by a signal, also before it was started") {
    sys::Child child = sys::Child::spawn({"sleep", "100"}).value();
    REQUIRE(child.start().has_value());
    REQUIRE(child.kill(SIGTERM).has_value());
    sys::Exit exit = child.wait().value();
    CHECK(exit.signalled);
    CHECK(exit.text() == "was killed by SIGTERM");
    CHECK(child.kill(SIGTERM).error().kind == Errc::not_found);

    sys::Child early = sys::Child::spawn({"sleep", "100"}).value();
    REQUIRE(early.kill(SIGKILL).has_value());
    pollfd p{early.pidfd(), POLLIN, 0};
    CHECK(poll(&p, 1, 5000) == 1);
    CHECK(early.start().has_value()); // no SIGPIPE; its end says the rest
    CHECK(early.wait().value().signalled);
}

TEST_CASE("process: what was started ends with its owner, unless it may stay") {
    auto before = test::open_descriptors();
    int moved = 0, stubborn = 0, stays = 0;
    {
        sys::Child child = sys::Child::spawn({"sleep", "100"}).value();
        REQUIRE(child.start().has_value());
        moved = child.pid();
        sys::Child other = std::move(child);
        CHECK(child.pid() == -1);
        CHECK(sys::process_exists(moved));
        CHECK(other.pid() == moved);
    }
    CHECK_FALSE(sys::process_exists(moved));
    {
        sys::Child child = sys::Child::spawn({"sh", "-c", "trap '' TERM; echo; while :; do sleep 0.05; done"}).value();
        REQUIRE(child.start().has_value());
        stubborn = child.pid();
        CHECK_FALSE(child.end(200'000'000, 0)); // time for its trap; then it is told to
    }
    CHECK_FALSE(sys::process_exists(stubborn));
    {
        sys::Child child = sys::Child::spawn({"sleep", "100"}).value();
        REQUIRE(child.start().has_value());
        stays = child.pid();
        child.let_run();
    }
    CHECK(sys::process_exists(stays));
    CHECK(sys::send_signal(stays, SIGKILL).has_value());
    CHECK(waitpid(stays, nullptr, 0) == stays);
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("process: runs as another user") {
    if (sys::effective_uid() != 0) SKIP("needs root to become another user");
    sys::User user;
    user.uid = 12345;
    user.gid = 23456;
    user.groups = {23456, 34567};
    user.name = "somebody";
    user.home = "/nowhere";
    auto child = sys::Child::spawn({"sh", "-c",
                                    "test \"$(id -u)\" = 12345 && test \"$(id -g)\" = 23456 && id -G | grep -q 34567 && "
                                    "test \"$USER$HOME\" = somebody/nowhere"},
                                   user)
                     .value();
    REQUIRE(child.start().has_value());
    CHECK(child.wait().value().code == 0);
}

TEST_CASE("process: signals can be read, and are as before afterwards") {
    auto before = test::open_descriptors();
    {
        sys::SignalFd signals = sys::SignalFd::open({SIGUSR1, SIGTERM}).value();
        CHECK(signals.read().value() == 0);
        raise(SIGUSR1);
        CHECK(signals.read().value() == SIGUSR1);
        CHECK(signals.read().value() == 0);
        raise(SIGTERM); // left unread: swallowed, not delivered when the mask is restored
        // A workload doesn't inherit the mask.
        auto child = sys::Child::spawn({"sh", "-c", "kill -TERM $$; sleep 10"}).value();
        REQUIRE(child.start().has_value());
        CHECK(child.wait().value().code == SIGTERM);
    }
    sigset_t now;
    sigprocmask(SIG_BLOCK, nullptr, &now);
    CHECK(sigismember(&now, SIGUSR1) == 0);
    CHECK(sigismember(&now, SIGTERM) == 0);
    CHECK(test::open_descriptors() == before);
}

TEST_CASE("process: pids that aren't there") {
    CHECK_FALSE(sys::process_exists(0x7ffffffe));
    CHECK_FALSE(sys::process_exists(-1));
    CHECK(sys::process_exists(getpid()));
    CHECK(sys::send_signal(0x7ffffffe, 0).error().kind == Errc::not_found);
    CHECK(sys::pidfd_open(0x7ffffffe).error().message().find("2147483646") != std::string::npos);
}
