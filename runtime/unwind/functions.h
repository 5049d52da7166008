// SPDX-License-Identifier: MIT
// Where a file's functions begin and end, names or none: what was stripped of its symbols still says so, for its exceptions.
// PURE.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::unwind {

/// [start, end), addresses as the file has them.
struct FunctionRange {
    uint64_t start = 0, ///< of the first byte
        end = 0;        ///< behind the last byte
};

/// Of each FDE in .eh_frame, in its order; malformed ones and empty functions are passed over. Nothing of a file without the
/// section, of a machine without a row in kMachines, or with more than kMostFrameBytes there.
[[nodiscard]] std::vector<FunctionRange> function_ranges(const elf::Elf &file);

/// The symbols of a file: .dynsym and .symtab, of those whose table can be read. A hostile file has thousands, which may share
/// their bytes: of these the first four.
[[nodiscard]] std::vector<elf::SymbolTable> symbol_tables(const elf::Elf &file);

} // namespace rawbpf::inline v0::unwind
