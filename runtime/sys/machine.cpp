// sysinfo(2), the limit of this process's address space, and the control group (v2) that a container sees as its root. On the
// machine itself the root group has no limit and no such file.
#include "runtime/sys/machine.h"

#include <algorithm>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

uint64_t address_space_limit() {
    rlimit64 own{};
    return invoke(__NR_prlimit64, 0, RLIMIT_AS, 0, reg(&own)) == 0 ? own.rlim_cur : UINT64_MAX; // RLIM64_INFINITY likewise
}

uint64_t memory_bytes() {
    struct sysinfo machine {};
    uint64_t bytes = uint64_t{1} << 30; // where even that is refused
    if (invoke(__NR_sysinfo, reg(&machine)) == 0) bytes = uint64_t{machine.totalram} * machine.mem_unit;
    bytes = std::min(bytes, address_space_limit());
    uint64_t limit = 0;
    for (const char c : first_line("/sys/fs/cgroup/memory.max")) {
        if (c < '0' || c > '9') return bytes; // "max"
        limit = limit * 10 + static_cast<uint64_t>(c - '0');
    }
    return limit != 0 && limit < bytes ? limit : bytes;
}

} // namespace rawbpf::inline v0::sys
