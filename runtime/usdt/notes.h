// SPDX-License-Identifier: MIT
// USDT probes as a binary describes them: the notes in .note.stapsdt. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::usdt {

/// One place where a probe stands: one note. Refers to the file's bytes.
struct Site {
    std::string_view provider,  ///< "python"
        name;                   ///< "function__entry"
    std::string_view arguments; ///< "-4@%eax 8@-96(%rbp)"
    uint64_t address = 0;       ///< of the nop, as linked
    uint64_t semaphore = 0;     ///< address of the counter, as linked; 0: none
};

/// What a file's .note.stapsdt says.
struct Notes {
    std::vector<Site> sites;     ///< as they stand
    std::vector<Error> problems; ///< what can't be read, with file, section and offset: a note each, or the rest
};

/// All notes of a file, of any machine, class and byte order. A note that is damaged inside costs itself; one whose sizes are
/// wrong all behind it. Errors: not_found where the file has no such section; unsupported for an object file that hasn't been
/// linked, where addresses aren't known yet.
[[nodiscard]] Result<Notes> read_notes(const elf::Elf &elf);

/// The segment that an address is loaded by, with its bytes from the file; nullptr: none.
[[nodiscard]] const elf::Segment *segment_at(const elf::Elf &elf, uint64_t address, uint64_t size);

} // namespace rawbpf::inline v0::usdt
