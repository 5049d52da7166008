// SPDX-License-Identifier: MIT
// A module's unwind table: from the bytes of an ELF file to rows that fit 4 bytes each. PURE.
//
//      .eh_frame (.debug_frame, where there is no .eh_frame)      CIE: how all its functions begin
//      FDE: a function, and a small program                        --run--> rows: address, rule --> compact table
//
// Source: the Linux Standard Base's chapter on exception frames, DWARF 5 section 6.4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/elf/elf.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

/// Rows for 64 KiB of code.
struct TablePage {
    uint32_t first = 0; ///< index in Table::rows
    uint32_t rows = 0;  ///< at most UNWIND_MAX_PAGE_ROWS; 0: no function has anything here
};

/// What was met on the way, for the ledger and for `doctor`.
struct TableStats {
    uint32_t functions = 0;      ///< FDEs
    uint32_t framed = 0;         ///< those that make a frame (the stack pointer moves); not the PLT, _start and their like
    uint32_t frame_pointers = 0; ///< those of them that set up a frame pointer
    uint32_t odd_rows = 0;       ///< rows that are UNWIND_ODD
    uint32_t bad_entries = 0;    ///< FDEs passed over, because they are malformed
    std::string first_bad;       ///< what was wrong with the first of them, with file, section and offset
};

/// A table, independent of where the module is mapped and of other modules' rules.
struct Table {
    uint64_t base = 0;             ///< address (as the file numbers them) where the first page begins; a multiple of 64 KiB
    std::vector<TablePage> pages;  ///< each 64 KiB from base on
    std::vector<uint32_t> rows;    ///< UNWIND_ROW(low, index in rules)
    std::vector<UnwindRule> rules; ///< different from each other; [0] is UNWIND_NONE
    TableStats stats;              ///< what was met on the way
    /// How much room it takes in the kernel's maps, rules aside.
    [[nodiscard]] size_t bytes() const { return pages.size() * sizeof(UnwindPage) + rows.size() * sizeof(uint32_t); }
    /// The rule for an address of the file.
    [[nodiscard]] UnwindRule find(uint64_t address) const;
};

/// The table of a file of one of kMachines (machines.h). A file without unwind information gives an empty table. A malformed
/// entry is passed over and counted. Errors: unsupported (another machine), bad_input (a section's bounds), both with file,
/// section and offset.
[[nodiscard]] Result<Table> build_table(const elf::Elf &file);

} // namespace rawbpf::inline v0::unwind
