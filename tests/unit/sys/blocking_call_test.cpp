// A system call made by a copy of this process.
#include "runtime/sys/blocking_call.h"

#include <poll.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/invoke.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

struct Pipe {
    int read = -1, write = -1;
    Pipe() {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        read = ends[0], write = ends[1];
    }
    void close_write() {
        if (write >= 0) close(write);
        write = -1;
    }
    ~Pipe() {
        close(read);
        close_write();
    }
    // What comes within ten seconds: a text, "" at the end of the file, "nothing".
    [[nodiscard]] std::string next() const {
        pollfd ready{read, POLLIN, 0};
        if (poll(&ready, 1, 10000) != 1) return "nothing";
        char text[8];
        const ssize_t n = ::read(read, text, sizeof text);
        return {text, static_cast<size_t>(n > 0 ? n : 0)};
    }
};

} // namespace

TEST_CASE("sys: a call in a copy of the process keeps one descriptor, until it is dropped") {
    Pipe kept, other;
    {
        Result<sys::BlockingCall> made =
            sys::BlockingCall::call(__NR_write, {static_cast<uint64_t>(kept.write), sys::reg("done"), 4, 0, 0, 0}, kept.write);
        REQUIRE(made.has_value());
        CHECK(kept.next() == "done");
        kept.close_write();
        other.close_write();
        CHECK(other.next().empty()); // the copy has closed it
        pollfd open{kept.read, POLLIN, 0};
        CHECK(poll(&open, 1, 0) == 0); // but this one is still open there
        sys::BlockingCall moved = std::move(*made);
        CHECK(poll(&open, 1, 0) == 0);
    }
    CHECK(kept.next().empty());
}
