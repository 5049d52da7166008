// Reads which version of Go made a program.
#pragma once

#include <optional>
#include <string>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::elf {

/// "go1.19.8", from .go.buildinfo (Go 1.12 and newer; no stripping takes it away); nullopt: it isn't there, or can't be read.
/// `image`: the whole file. PURE. Source: Go's debug/buildinfo.
[[nodiscard]] std::optional<std::string> go_version(const Elf &elf, Bytes image);

} // namespace rawbpf::inline v0::elf
