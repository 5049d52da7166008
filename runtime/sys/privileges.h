// This process's capabilities, limits and names, and the kernel's file systems and version. All of it without /proc and /sys.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// Capabilities by the kernel's numbers (include/uapi/linux/capability.h); old headers lack the last three.
enum class Capability : uint8_t {
    dac_read_search = 2,
    net_admin = 12,
    sys_ptrace = 19,
    sys_admin = 21,
    sys_resource = 24,
    syslog = 34,
    perfmon = 38, ///< 5.8
    bpf = 39,     ///< 5.8
};

/// The effective set of this thread.
struct Capabilities {
    uint64_t effective = 0;
    [[nodiscard]] bool has(Capability capability) const { return effective >> static_cast<unsigned>(capability) & 1; }
};
/// capget(2).
[[nodiscard]] Result<Capabilities> capabilities();

/// The soft limit of locked memory in bytes; UINT64_MAX: none. Maps and programs count against it before 5.11.
[[nodiscard]] Result<uint64_t> memlock_limit();

/// What statfs(2) calls the file system that `path` lies on (f_type): 0xcafe4a11 is bpf, 0x74726163 tracefs.
[[nodiscard]] Result<uint64_t> file_system_magic(const std::string &path);

struct SystemName {
    std::string release; ///< "6.12.48+deb13-amd64"
    std::string machine; ///< "x86_64", "aarch64"
    std::string version; ///< "#1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1 (2025-09-20)"
};
/// uname(2).
[[nodiscard]] Result<SystemName> system_name();

} // namespace rawbpf::inline v0::sys
