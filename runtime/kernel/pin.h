// SPDX-License-Identifier: MIT
// Pins: names in a bpf file system that keep programs and maps alive.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/pins.h"

namespace rawbpf::inline v0 {

/// Pins every program as DIRECTORY/NAME and every map as DIRECTORY/maps/NAME, dots in names made underscores; makes the
/// directories, one level each. On failure nothing of it stays. Errors: busy (a name is taken), invalid_argument (no bpf file
/// system, with a hint).
[[nodiscard]] Result<void> pin_object(const LoadedObject &object, const std::string &directory);
/// The same, and it stays only if `into` is kept.
[[nodiscard]] Result<void> pin_object(const LoadedObject &object, const std::string &directory, Pins &into);

} // namespace rawbpf::inline v0
