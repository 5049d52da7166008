// CPython's code objects as they were sent: the texts, and the line of a position. Anybody's bytes: all lengths are checked.
// PURE.
//
// Three formats of tables (Objects/locations.md, Objects/lnotab_notes.txt of CPython), all of them differences from the first
// line:
//
//      3.11+   entries of one byte and what it announces: | 1 | kind 4 | instructions - 1, 3 |, lines as variable-length numbers
//      3.10    pairs: bytes of code, difference of lines (-128: no line)
//      to 3.9  pairs: bytes of code in front of the line, difference of lines
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/languages/runtime.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::cpython {

/// A string object's text as UTF-8, as much as there is of it; unprintable bytes stay. `head`, `text`: Layout's. nullopt: it
/// isn't one.
[[nodiscard]] std::optional<std::string> string_of(Bytes object, uint32_t head, uint32_t text);

enum class LineTable : uint8_t { locations, ranges, pairs };
/// Which format a version has.
[[nodiscard]] LineTable line_table_of(const Layout &layout);

/// The line of the instruction `offset` bytes behind the first. 0: it has none, or the table is malformed or too short.
[[nodiscard]] uint32_t line_at(Bytes table, LineTable format, uint32_t first_line, uint64_t offset);

} // namespace rawbpf::inline v0::languages::cpython
