// Where optimised code would go back to the interpreter, of the calls in it: V8's way from a return address to a bytecode, by
// which Error().stack has its lines.
//
//      table of safepoints   ... | returns to | exit + 1 | the exit's code + 1 | ...      behind the machine code
//      exits                 bytecode | where its translation is | its code  , ...        what code has for going back, its end
//      translation           a number | how far back | how many frames: signed | ...      an array of bytes, the first of that
//
// The table of positions (positions.h) should say the same. But Maglev of V8 13.6 makes a loop's first turn apart and then writes
// the end of the loop as the place of all that is in it. A call whose translation has one frame isn't inlined, so the bytecode is
// the code's own function's; what there is for more frames isn't read.
//
// How a table of safepoints is laid out changes from version to version: it is searched for an entry whose exit's code is where
// the list of exits says. TurboFan's lists hold other addresses, and no code begins there: they are none. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::v8 {

/// One place at which optimised code can go back.
struct Exit {
    int32_t bytecode;    ///< bytes, in the bytecodes of the innermost function there
    int32_t translation; ///< bytes, in the array of translations
    int32_t code;        ///< bytes from where the machine code begins
    [[nodiscard]] bool operator==(const Exit &other) const = default;
};

/// The array that code has for going back: words as they are in the heap. Its exits, those of calls last; nullopt: it ends with
/// none, or they aren't Maglev's.
[[nodiscard]] std::optional<std::vector<Exit>> read_exits(std::span<const uint64_t> words);
/// The exit of the call that returns to this byte of the code. `behind`: what lies behind the machine code. nullptr: none is
/// found.
[[nodiscard]] const Exit *exit_of_call(Bytes behind, std::span<const Exit> exits, uint32_t returns_to);
/// Whether a translation has one frame.
[[nodiscard]] bool has_one_frame(Bytes translations, int32_t at);

} // namespace rawbpf::inline v0::languages::v8
