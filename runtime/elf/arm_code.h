// Which of 32-bit ARM's two instruction sets a place in a file is in. PURE.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::elf {

/// Whether the code at this address is Thumb's, as the nearest function or mapping symbol ($a, $t) at or before it says; nullopt:
/// the file has none.
[[nodiscard]] std::optional<bool> is_thumb(const Elf &file, uint64_t address);

} // namespace rawbpf::inline v0::elf
