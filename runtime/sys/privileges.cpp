// Four small calls. capget(2) speaks in two words of 32 bits since its third version (2.6.26):
//
//      header {version, pid}   data[0] {effective, permitted, inheritable}   bits  0 to 31
//                              data[1] {effective, permitted, inheritable}   bits 32 to 63
#include "runtime/sys/privileges.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "runtime/base/fail.h"
#include "runtime/sys/invoke.h"

namespace rawbpf::inline v0::sys {

Result<Capabilities> capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
    if (long r = invoke(__NR_capget, reg(&header), reg(data)); r < 0) return fail_os(static_cast<int>(-r), "capget");
    return Capabilities{uint64_t{data[1].effective} << 32 | data[0].effective};
}

Result<uint64_t> memlock_limit() {
    rlimit limit{};
    if (long r = invoke(__NR_prlimit64, 0, RLIMIT_MEMLOCK, 0, reg(&limit)); r < 0)
        return fail_os(static_cast<int>(-r), "prlimit64");
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : uint64_t{limit.rlim_cur};
}

Result<uint64_t> file_system_magic(const std::string &path) {
    struct statfs info {};
    if (long r = invoke(__NR_statfs, reg(path.c_str()), reg(&info)); r < 0) return fail_os(static_cast<int>(-r), "{}", path);
    return static_cast<uint64_t>(info.f_type);
}

Result<SystemName> system_name() {
    utsname name{};
    if (long r = invoke(__NR_uname, reg(&name)); r < 0) return fail_os(static_cast<int>(-r), "uname");
    return SystemName{name.release, name.machine, name.version};
}

} // namespace rawbpf::inline v0::sys
