// Where the frames of Go's functions begin, out of the table that every Go program has. Inside of this room; PURE.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/elf/go_table.h"
#include "runtime/unwind/cfi.h"

namespace rawbpf::inline v0::unwind {

/// What is special about one of Go's functions.
enum class GoKind : uint8_t {
    plain,
    root,     ///< nobody called it
    switches, ///< goes on with another stack
    moves,    ///< moves its stack pointer to where the table doesn't know: assembly that aligns it
    signal,   ///< signal handlers return to it
};
[[nodiscard]] GoKind go_kind(const elf::GoTable &table, const elf::GoFunction &function);

/// Appends the rules of a function to `out`, ascending; the first is at its start. Returns what is wrong, or nullptr.
[[nodiscard]] const char *go_rules(const elf::GoTable &table, const elf::GoFunction &function, const Machine &machine,
                                   std::vector<Change> &out);

} // namespace rawbpf::inline v0::unwind
