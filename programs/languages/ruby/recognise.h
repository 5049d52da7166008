// Whether a file is Ruby's interpreter: ruby itself, or libruby.so. Told by what it exports. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::ruby {

/// nullopt: it isn't one. Its version: 0x030102 is 3.1.2; 0: unknown.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::ruby
