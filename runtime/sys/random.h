// Random numbers of the kernel.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

/// Fills `into` (getrandom(2), 3.17). Meant for seeds: one system call for each 256 bytes. Errors: the errno.
[[nodiscard]] Result<void> random_bytes(std::span<std::byte> into);

} // namespace rawbpf::inline v0::sys
