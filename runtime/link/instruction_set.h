// Where a uprobe would break a program of 32-bit ARM. Private to this folder.
#pragma once

#include <span>
#include <string>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// An error unless the code at all of these offsets is one that uprobes can stand in. Only 32-bit ARM has another.
[[nodiscard]] Result<void> check_instruction_set(const std::string &path, std::span<const unsigned long> offsets);

} // namespace rawbpf::inline v0
