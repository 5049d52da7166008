// Reads compressed sections.
#pragma once

#include <optional>
#include <string>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::elf {

/// What a section holds, where it is compressed; nullopt: it isn't. PURE.
/// Errors: bad_input (damaged), unsupported (compressed by something else than zlib, a 32-bit file), no_memory (more than `limit`
/// bytes).
[[nodiscard]] Result<std::optional<std::string>> decompressed(const Elf &elf, const Section &section, size_t limit);

} // namespace rawbpf::inline v0::elf
