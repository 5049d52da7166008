// Whether an ELF file is an object that this project reads.
#pragma once

#include <string_view>

#include "runtime/base/result.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0 {

/// `name` is the file's, for messages. Errors: bad_input for another machine's code, which is named; unsupported for big-endian
/// and 32-bit objects.
[[nodiscard]] Result<void> check_elf_kind(const elf::Elf &elf, std::string_view name);

} // namespace rawbpf::inline v0
