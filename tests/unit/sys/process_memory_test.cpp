// Memory of a process by the call that is for it, and by its file where a kernel hasn't that call.
#include "runtime/sys/process_memory.h"

#include <cerrno>
#include <cstdint>
#include <vector>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/sys/invoke.h"
#include "tests/support/emulated.h"
#include "tests/support/test.h"

using namespace rawbpf;

namespace {

/// The kernel, without process_vm_readv(2).
struct Without : sys::Backend {
    int refused = 0;
    long call(const sys::Call &call) override {
        if (call.number != __NR_process_vm_readv) return sys::kernel_backend().call(call);
        ++refused;
        return -ENOSYS;
    }
};

} // namespace

TEST_CASE("process memory: the same by the call and by the file, up to what isn't mapped") {
    if (test::memory_is_elsewhere()) SKIP("an emulator runs this, and /proc has the host's addresses");
    const size_t page = 65536; // a multiple of each kernel's
    auto *at = static_cast<char *>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(at != MAP_FAILED);
    at[0] = 'a';
    at[page - 1] = 'z';
    REQUIRE(munmap(at + page, page) == 0);
    const auto self = static_cast<uint32_t>(getpid());
    Without without;
    for (const bool by_file : {false, true}) {
        INFO(by_file);
        if (by_file) sys::use_backend(&without);
        std::vector<std::byte> bytes(page);
        const Result<size_t> whole = sys::read_memory(self, reinterpret_cast<uintptr_t>(at), bytes);
        const std::byte first = bytes.front(), last = bytes.back();
        const Result<size_t> part = sys::read_memory(self, reinterpret_cast<uintptr_t>(at + page - 1), bytes);
        const Result<size_t> none = sys::read_memory(self, reinterpret_cast<uintptr_t>(at + page), bytes);
        const Result<size_t> nobody = sys::read_memory(0x7ffffffe, 0x1000, bytes);
        sys::use_backend(nullptr);
        REQUIRE(whole);
        CHECK(*whole == page);
        CHECK(first == std::byte{'a'});
        CHECK(last == std::byte{'z'});
        REQUIRE(part);
        CHECK(*part == 1);
        CHECK(bytes[0] == std::byte{'z'});
        REQUIRE(!none);
        CHECK(none.error().os == EFAULT);
        REQUIRE(!nobody);
        CHECK(nobody.error().kind == Errc::not_found);
    }
    CHECK(without.refused == 4);
    munmap(at, page);
}
