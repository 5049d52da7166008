// A file that lives as long as somebody has it open or mapped.
#include "runtime/sys/memory_file.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {
namespace {
constexpr uint64_t kNoExecSeal = 8; // MFD_NOEXEC_SEAL, 6.3
}

Result<Fd> memory_file(const std::string &name) {
    long fd = invoke(__NR_memfd_create, reg(name.c_str()), MFD_CLOEXEC | kNoExecSeal);
    if (fd == -EINVAL) fd = invoke(__NR_memfd_create, reg(name.c_str()), MFD_CLOEXEC);
    if (fd < 0) return fail_os(-fd, "making a file {} in memory", name);
    return Fd(static_cast<int>(fd));
}

} // namespace rawbpf::inline v0::sys
