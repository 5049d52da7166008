// How stacks go through a file's code: which share of it has unwind tables, which keeps frame pointers, which has neither. PURE.
#pragma once

#include <cstdint>

#include "runtime/elf/elf.h"
#include "runtime/unwind/table.h"

namespace rawbpf::inline v0::unwind {

/// Bytes of code. Padding counts for nothing, nor do holes of some instructions.
struct Coverage {
    uint64_t by_table = 0;
    uint64_t by_pointers = 0; ///< in holes of the table, where frame pointers are set up, or left as the caller's
    uint64_t by_neither = 0;  ///< in holes, or by rules that can't be followed: stacks end there, unless they are lucky
    [[nodiscard]] uint64_t all() const { return by_table + by_pointers + by_neither; }
    /// Of 100, rounded down; 0 of no code.
    [[nodiscard]] int percent(uint64_t bytes) const { return all() == 0 ? 0 : static_cast<int>(bytes * 100 / all()); }
};

/// Of a file of one of kMachines and the table that build_table() has made of it.
[[nodiscard]] Coverage coverage(const elf::Elf &file, const Table &table);

} // namespace rawbpf::inline v0::unwind
