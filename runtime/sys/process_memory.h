// The memory of another process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// process_vm_readv(2), or /proc/PID/mem where the kernel is built without it: how many bytes at `address` of that process could
/// be read, from the first on. Errors: invalid where none can (EFAULT), permission (it takes what ptrace(2) takes), not_found (it
/// has ended).
[[nodiscard]] Result<size_t> read_memory(uint32_t pid, uint64_t address, std::span<std::byte> into);

} // namespace rawbpf::inline v0::sys
