#include "runtime/sys/process_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<size_t> read_memory(uint32_t pid, uint64_t address, std::span<std::byte> into) {
    const iovec to{into.data(), into.size()}, from{reinterpret_cast<void *>(static_cast<uintptr_t>(address)), into.size()};
    const long n = invoke(__NR_process_vm_readv, pid, reg(&to), 1, reg(&from), 1, 0);
    if (n < 0) return fail_os(-n, "process_vm_readv");
    return static_cast<size_t>(n);
}

} // namespace rawbpf::inline v0::sys
