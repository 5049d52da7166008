// SPDX-License-Identifier: MIT
// Finds the bpf_spin_lock in a map's values.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::emulator {

/// Its offset in a struct, or in a section of variables; nothing where there is none, as in what is no type.
[[nodiscard]] std::optional<uint32_t> lock_in(const btf::Btf &types, btf::TypeId value);

} // namespace rawbpf::inline v0::emulator
