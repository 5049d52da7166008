// Namespaces by the device and inode of their files, as bpf_get_ns_current_pid_tgid() (5.7) wants them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

struct Namespace {
    uint64_t device = 0; ///< as the kernel has it inside: major << 20 | minor
    uint64_t inode = 0;
};
/// That of a file in /proc/PID/ns. Errors: not_found, permission.
[[nodiscard]] Result<Namespace> namespace_of(const std::string &path);
/// This process's pid namespace; nullopt in the initial one, where ids need no translation, and where it can't be told.
[[nodiscard]] std::optional<Namespace> own_pid_namespace();

} // namespace rawbpf::inline v0::sys
