// A child of a test that works when it is told to.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

namespace rawbpf::test {

/// A child that waits for a word before it does `work`.
template <class Work> struct Child {
    explicit Child(Work work) {
        REQUIRE(pipe(go) == 0);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid != 0) return;
        close(go[1]); // so that it ends when we do
        char word = 0;
        if (read(go[0], &word, 1) != 1) _exit(1);
        work();
        _exit(0);
    }
    ~Child() {
        close(go[0]);
        close(go[1]);
        if (!ended) (void)waitpid(pid, nullptr, 0);
    }
    void release() const { REQUIRE(write(go[1], "", 1) == 1); }
    /// Lets it work, and waits until it has.
    void run() {
        release();
        int status = 0;
        REQUIRE(waitpid(pid, &status, 0) == pid);
        ended = true;
        REQUIRE(status == 0);
    }
    bool poll() {
        int status = 0;
        if (!ended && waitpid(pid, &status, WNOHANG) == pid) {
            ended = true;
            REQUIRE(status == 0);
        }
        return ended;
    }
    int pid = -1, go[2] = {-1, -1};
    bool ended = false;
};

} // namespace rawbpf::test
