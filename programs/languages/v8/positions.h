// V8's tables of positions: which place in the source a place in code is of.
//
//      a table of positions      code: 5 | text: 213 ,  +3 | -11 ,  +9 | +42 ...      of bytecode, and of what is optimised
//      a table of inlinings      [0] called at text 426, is function 0   [1] called at text 328 of [0], is function 1 ...
//      a table of bytecodes      +21 +43 +43 +28 ...     how many bytes of machine code each has: of baseline code
//
// Numbers are written seven bits a byte, the lowest first; each is the difference from the one before. Nothing says that bytes
// are such a table, but few others can be: it ends where its bytes end, code ascends and ends within the code, and texts are in
// the source. What isn't so is none. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::languages::v8 {

/// A position, valid from `code` on to the next one's.
struct Position {
    int32_t code;    ///< bytes; -1: where a function is entered
    int32_t text;    ///< characters of the source; -1: unknown
    int32_t inlined; ///< by which inlining it is there; -1: none, it is the code's own function's
    [[nodiscard]] bool operator==(const Position &other) const = default;
};

/// What the numbers of a table must be below, or they make no sense.
struct Limits {
    uint32_t code;
    uint32_t text;    ///< of what isn't inlined, one past it is allowed: where the source ends
    uint32_t inlined; ///< how many inlinings there are
};

[[nodiscard]] std::optional<std::vector<Position>> read_positions(Bytes table, const Limits &limits);
/// The last one at or before a byte of code; nullptr: there is none.
[[nodiscard]] const Position *position_at(std::span<const Position> positions, int32_t code);

/// Where one function was inlined in another.
struct Inlining {
    int32_t text;     ///< of the call
    int32_t inlined;  ///< by which inlining the calling one is there: one before; -1: it is the code's own function
    int32_t function; ///< a number of the code's list of inlined functions; -1: the code's own function once more
    [[nodiscard]] bool operator==(const Inlining &other) const = default;
};
[[nodiscard]] std::optional<std::vector<Inlining>> read_inlinings(Bytes table);

/// The bytes of each bytecode with its operands: for operands of one byte, two, and four.
class BytecodeSizes {
  public:
    /// As a file has them, found by what they must be: the first ones are known, and each grows with its operands.
    [[nodiscard]] static std::optional<BytecodeSizes> find(Bytes file);
    /// `table`: three rows of equal length.
    explicit BytecodeSizes(Bytes table);
    /// Of the bytecode at the beginning; 0: there is none.
    [[nodiscard]] uint32_t of(Bytes bytecodes) const;

  private:
    std::vector<uint8_t> sizes_;
};

/// The bytecode that baseline code runs at `at` bytes from its beginning; -1: none yet. nullopt: the table isn't these
/// bytecodes'.
[[nodiscard]] std::optional<int32_t> bytecode_at(Bytes table, Bytes bytecodes, const BytecodeSizes &sizes, uint32_t at);

} // namespace rawbpf::inline v0::languages::v8
