// What tells a file's unwind information from all others'. PURE, given the key.
#pragma once

#include <cstdint>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::unwind {

/// Of what build_table() makes a table from: where the segments and sections lie, and the bytes of .eh_frame and .debug_frame.
/// Two files with the same build-id have different ones unless they agree in all that; who doesn't know the key can't make them
/// equal.
[[nodiscard]] uint64_t fingerprint(const elf::Elf &file, uint64_t key);

} // namespace rawbpf::inline v0::unwind
