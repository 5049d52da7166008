// Whether a file is PHP's interpreter: php, php-fpm, libphp.so. Told by what it exports. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::php {

/// nullopt: it isn't one. Its version: 0x080224 is 8.2.36; 0: unknown. Builds with threads (ZTS) have a `why_not`.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::php
