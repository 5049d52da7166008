// Go's own table of functions, which its runtime needs for tracebacks and which strip doesn't remove.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::elf {

/// A function of a Go program.
struct GoFunction {
    uint64_t start = 0, ///< its first address, as the file has it
        end = 0;        ///< the address behind its last one
    uint32_t name = 0;  ///< offset in GoTable::names
    uint32_t stack = 0; ///< offset in GoTable::steps: how far the stack pointer has moved, by address
    uint8_t flags = 0;  ///< kGo...; Go 1.17 and newer, else 0
};
/// Bits of GoFunction::flags (runtime/symtab.go: funcFlag): a stack's outermost function; one that changes the stack pointer.
///@{
inline constexpr uint8_t kGoTopFrame = 1, kGoWritesStackPointer = 2;
///@}

/// The table, and where its parts stand.
struct GoTable {
    std::vector<GoFunction> functions; ///< in the file's order, which is that of their addresses
    Bytes names,                       ///< NUL-terminated strings; they lie in the file's bytes
        steps;                         ///< in the file, too: what follows, up to the table's end
    uint64_t names_offset = 0;         ///< of `names`, in the file
    uint8_t quantum = 1;               ///< bytes that addresses in `steps` count in
};

/// Reads the table of a program made by Go 1.2 or newer, of any word size and byte order; nullopt where there is none, or nothing
/// in it that could be read. PURE. Source: golang.org/s/go12symtab, and Go's debug/gosym, runtime/symtab.go and cmd/link.
[[nodiscard]] std::optional<GoTable> read_go_table(const Elf &elf);

} // namespace rawbpf::inline v0::elf
