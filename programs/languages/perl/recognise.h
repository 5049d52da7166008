// Whether a file is Perl's interpreter: perl, or libperl.so. Told by what it exports. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::perl {

/// nullopt: it isn't one. Its version: 0x052400 is 5.36.0; 0: unknown. Builds without threads have a `why_not`.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::perl
