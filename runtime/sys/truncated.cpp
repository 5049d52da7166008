// Files of other programs are mapped, because reading them would need memory of their size. So a file can change while we read
// it, and become shorter: a page of the mapping behind the end of the file doesn't exist, and an access to it raises SIGBUS
// with BUS_ADRERR (mm/memory.c: VM_FAULT_SIGBUS).
//
//      mapped when it had 5 pages      | 0 | 1 | 2 | 3 | 4 |
//      the file has 2 by now           | 0 | 1 | here: zeros, a page of our own for each that is touched
//
// Code that reads such a file has to check it at each access anyway: somebody may also write to it.
#include "runtime/sys/truncated.h"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/mman.h>

#include "runtime/sys/file.h"

namespace rawbpf::inline v0::sys {
namespace {

uintptr_t page_bytes = 0;

void put_zeros(int, siginfo_t *info, void *) {
    const int before = errno;
    const uintptr_t page = reinterpret_cast<uintptr_t>(info->si_addr) / page_bytes * page_bytes;
    const bool put = info->si_code == BUS_ADRERR && mmap(reinterpret_cast<void *>(page), page_bytes, PROT_READ,
                                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    if (!put) signal(SIGBUS, SIG_DFL); // it is touched again when this returns
    errno = before;
}

} // namespace

void outlive_truncated_files() {
    page_bytes = page_size();
    struct sigaction action {};
    action.sa_sigaction = put_zeros;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGBUS, &action, nullptr);
}

} // namespace rawbpf::inline v0::sys
