// A namespace has no number of its own: it is known by its file.
#include "runtime/sys/namespaces.h"

#include <sys/sysmacros.h>

#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::sys {
namespace {

constexpr uint64_t kInitialPidNamespace = 0xeffffffc; // PROC_PID_INIT_INO, kernel include/linux/proc_ns.h

} // namespace

Result<Namespace> namespace_of(const std::string &path) {
    const struct stat st = TRY(stat_file(path));
    return Namespace{uint64_t{major(st.st_dev)} << 20 | minor(st.st_dev), st.st_ino};
}

std::optional<Namespace> own_pid_namespace() {
    const Result<Namespace> own = namespace_of("/proc/self/ns/pid");
    if (!own || own->inode == kInitialPidNamespace) return {};
    return *own;
}

} // namespace rawbpf::inline v0::sys
