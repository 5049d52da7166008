// Ruby's code objects as they were sent: the texts, and the line of a position. Anybody's bytes: all lengths are checked. PURE.
//
// Each instruction that begins a line, or an event, has an entry with the line's number; which entry a position has, an index
// says that counts how many begin up to there: 54 counts of 7 bits, nine a word, then blocks of 512 positions with a count, eight
// counts of 9 bits and a bit for each position.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/languages/runtime.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::ruby {

inline constexpr uint32_t kFar = 1 << 13;      ///< of a string's flags: its characters are elsewhere
inline constexpr uint32_t kEmbedded = 24;      ///< Layout::text: characters behind their length (3.2 on)
inline constexpr uint32_t kEmbeddedShort = 16; ///< their length is in the flags (to 3.1)

/// A string's characters, as much as there is of them. `text`: Layout's.
[[nodiscard]] std::string string_of(Bytes object, uint32_t text);

/// The number of the entry that the instruction at `position` (words) has; nullopt: the index ends in front of it.
[[nodiscard]] std::optional<uint32_t> entry_at(Bytes index, uint64_t position);

/// The line of the instruction at `position`; 0: it has none, or the tables are too short. `entry`: bytes of each.
[[nodiscard]] uint32_t line_at(Bytes entries, uint32_t entry, Bytes index, uint64_t position);

} // namespace rawbpf::inline v0::languages::ruby
