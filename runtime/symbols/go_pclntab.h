// Go's own table of functions, which its runtime needs for tracebacks and which no stripping takes away.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/symbols/function_table.h"

namespace rawbpf::inline v0::symbols {

/// The functions of a Go program, and where their names stand: at offsets in one part of the file.
struct GoFunctions {
    FunctionTable functions;
    uint64_t names_offset = 0; ///< in the file, bytes
    uint64_t names_size = 0;
};

/// Reads the table of a program made by Go 1.2 or newer, of any word size and byte order; nullopt where there is none, or nothing
/// in it that could be read. PURE. Source: golang.org/s/go12symtab, and Go's debug/gosym and cmd/link.
[[nodiscard]] std::optional<GoFunctions> read_go_pclntab(const elf::Elf &elf);

} // namespace rawbpf::inline v0::symbols
