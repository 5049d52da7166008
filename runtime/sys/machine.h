// Properties of the machine.
#pragma once

#include <cstdint>

namespace rawbpf::inline v0::sys {

/// Its memory in bytes, or less: what this process may have (RLIMIT_AS), what a container has (memory.max of the cgroup that it
/// sees as the root).
[[nodiscard]] uint64_t memory_bytes();

/// How many bytes this process's address space may have (RLIMIT_AS, `ulimit -v`); UINT64_MAX: any number.
[[nodiscard]] uint64_t address_space_limit();

} // namespace rawbpf::inline v0::sys
