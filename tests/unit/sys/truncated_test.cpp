// A file that becomes shorter while it is mapped.
#include "runtime/sys/truncated.h"

#include <csignal>
#include <cstdlib>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys/file.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

// A child that maps a file of 3 pages full of 'x', and reads them after it was cut to half a page; its wait status.
int read_what_was_cut(bool outlives) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        signal(SIGBUS, SIG_DFL); // sanitizers have a handler
        char name[] = "/tmp/rawbpf-cut-XXXXXX";
        const Fd file(mkstemp(name));
        unlink(name);
        const size_t page = sys::page_size();
        const std::string text(3 * page, 'x');
        if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(1);
        if (outlives) sys::outlive_truncated_files();
        const Result<sys::Mapping> mapping = sys::map_file(file, name);
        if (!mapping || mapping->bytes().size() != 3 * page) _exit(2);
        if (ftruncate(file.get(), static_cast<off_t>(page / 2)) != 0) _exit(3);
        const Bytes bytes = mapping->bytes();
        if (bytes[0] != std::byte{'x'}) _exit(4);
        if (bytes[page / 2] != std::byte{0} || bytes[page] != std::byte{0} || bytes[3 * page - 1] != std::byte{0}) _exit(5);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

// Whether a signal says which page was touched. qemu-arm's says another one.
uintptr_t touched_page = 0;
void compare_page(int, siginfo_t *info, void *) { _exit(reinterpret_cast<uintptr_t>(info->si_addr) == touched_page ? 0 : 1); }
bool signals_say_where() {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char name[] = "/tmp/rawbpf-cut-XXXXXX";
        const Fd file(mkstemp(name));
        unlink(name);
        const size_t page = sys::page_size();
        if (ftruncate(file.get(), static_cast<off_t>(3 * page)) != 0) _exit(2);
        const Result<sys::Mapping> mapping = sys::map_file(file, name);
        if (!mapping || ftruncate(file.get(), 1) != 0) _exit(2);
        touched_page = reinterpret_cast<uintptr_t>(mapping->bytes().data()) + page;
        struct sigaction action {};
        action.sa_sigaction = compare_page;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGBUS, &action, nullptr);
        (void)*reinterpret_cast<const volatile char *>(touched_page);
        _exit(2);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) != 2);
    return WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE("truncated files: what was cut off is zeros") {
    if (!signals_say_where()) SKIP("this emulator's SIGBUS names another page than the one that was touched");
    CHECK(read_what_was_cut(true) == 0);
    const int status = read_what_was_cut(false);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGBUS);
}
