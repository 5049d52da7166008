// Files in an address space that is bounded (ulimit -v).
#include <string>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/sys/file.h"
#include "tests/support/sanitized.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

constexpr size_t kMegabyte = 1 << 20;

// Where a sweep through files of 1 to 64 MB ends in an address space that has 64 MB more than this process uses now.
enum End : int { all_right, cannot_try, not_bounded, no_room_left, wrong_error, none_mapped, none_refused };

End sweep() {
    const std::string pages = sys::first_line("/proc/self/statm");
    const rlimit bound{std::stoull(pages) * sys::page_size() + 64 * kMegabyte, RLIM_INFINITY};
    char name[] = "/tmp/rawbpf-room-XXXXXX";
    const Fd file(mkstemp(name));
    unlink(name);
    if (!file || setrlimit(RLIMIT_AS, &bound) != 0) return cannot_try;
    if (void *much = mmap(nullptr, 128 * kMegabyte, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); much != MAP_FAILED)
        return not_bounded; // an emulator's own limit
    bool mapped = false, refused = false;
    for (size_t size = kMegabyte; size <= 64 * kMegabyte; size += kMegabyte) {
        if (ftruncate(file.get(), static_cast<off_t>(size)) != 0) return cannot_try;
        const Result<sys::Mapping> mapping = sys::map_file(file, name);
        (mapping ? mapped : refused) = true;
        if (!mapping && mapping.error().kind != Errc::no_memory) return wrong_error;
        void *small = mmap(nullptr, 8 * kMegabyte, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (small == MAP_FAILED) return no_room_left;
        munmap(small, 8 * kMegabyte);
    }
    return !mapped ? none_mapped : !refused ? none_refused : all_right;
}

} // namespace

TEST_CASE("file: a mapped file never takes the last of a bounded address space") {
    if (test::kSanitized) return; // their own memory is most of it
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(sweep());
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == not_bounded) return;
    CHECK(WEXITSTATUS(status) == all_right);
}
