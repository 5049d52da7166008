#include "runtime/sys/process_memory.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {

// A kernel for a small board may be without that call (CONFIG_CROSS_MEMORY_ATTACH), and qemu-user is.
Result<size_t> read_file_of_memory(uint32_t pid, uint64_t address, std::span<std::byte> into) {
    const Fd file = TRY(open(format("/proc/{}/mem", pid), O_RDONLY));
    Result<size_t> read = sys::pread(file.get(), into.data(), into.size(), address);
    if (!read && read.error().os == EIO) return fail_os(EFAULT, "/proc/{}/mem", pid); // nothing is mapped there
    return read;
}

} // namespace

Result<size_t> read_memory(uint32_t pid, uint64_t address, std::span<std::byte> into) {
    const iovec to{into.data(), into.size()}, from{reinterpret_cast<void *>(static_cast<uintptr_t>(address)), into.size()};
    const long n = invoke(__NR_process_vm_readv, pid, reg(&to), 1, reg(&from), 1, 0);
    if (n == -ENOSYS) return read_file_of_memory(pid, address, into);
    if (n < 0) return fail_os(-n, "process_vm_readv");
    return static_cast<size_t>(n);
}

} // namespace rawbpf::inline v0::sys
