// What V8's heap says of a function, read while its process runs on.
//
//      JSFunction --> SharedFunctionInfo --> ScopeInfo --> name, place in the source
//                                       \--> Script --> file, source text, ends of its lines
//
// A pointer has 1 as its lowest bit, a small integer (Smi) 0 and its value in the upper half. Objects move when garbage is
// collected, so whatever is read may be another object by now, or none: each has a map, which says of what type it is, and what
// isn't of the right one is no function. What moved a moment ago is followed: its map's word is its new place then.
//
// Everything is bounded: so much is read of one function, and no more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/languages/memory.h"
#include "programs/languages/v8/layout.h"

namespace rawbpf::inline v0::languages::v8 {

[[nodiscard]] constexpr bool is_pointer(uint64_t word) { return (word & 3) == 1; }
[[nodiscard]] constexpr bool is_smi(uint64_t word) { return (word & 0xffffffff) == 0; }
[[nodiscard]] constexpr int32_t smi(uint64_t word) { return static_cast<int32_t>(word >> 32); }

/// A SharedFunctionInfo, and what of it tells whether there is still the same one at its address.
struct Shared {
    uint64_t at = 0;
    uint64_t name_or_scope = 0, script = 0; ///< words of it

    [[nodiscard]] bool operator==(const Shared &other) const = default;
};

/// A function as its source has it.
struct Function {
    std::string name;      ///< empty: it has none
    uint64_t script = 0;   ///< the Script; 0: it is one of V8's own
    uint64_t source = 0;   ///< that one's text; 0: none
    int32_t position = -1; ///< of its beginning in the text, in characters; negative: unknown
};

class Heap {
  public:
    Heap(Memory &memory, const Layout &layout) : memory_(memory), layout_(layout) {}

    /// Of a word that may be a JSFunction; nullopt: it isn't one, or can't be read.
    [[nodiscard]] std::optional<Shared> shared(uint64_t function);
    /// The same words without a look at types: they are to be compared with those of a function that is known.
    [[nodiscard]] std::optional<Shared> supposed(uint64_t function);
    /// Of a word that may be a SharedFunctionInfo, likewise.
    [[nodiscard]] std::optional<Shared> shared_info(uint64_t word);
    /// nullopt: its parts aren't what they should be.
    [[nodiscard]] std::optional<Function> function(const Shared &shared);
    /// The name of a Script; empty: it has none.
    [[nodiscard]] std::string script_name(uint64_t script);
    /// Where in a Script's text its lines end, ascending: as V8 has it, else counted. nullopt: the text isn't in the heap (as
    /// that of node's own scripts), is too long, or can't be read.
    [[nodiscard]] std::optional<std::vector<uint32_t>> line_ends(uint64_t script, uint64_t source);
    /// Text as UTF-8; a name is on one line, and not longer than symbols::kLongestName. nullopt: it is no string, or lies
    /// elsewhere.
    [[nodiscard]] std::optional<std::string> text(uint64_t string);
    /// How many characters it has; 0: none, or it can't be read.
    [[nodiscard]] uint32_t length(uint64_t string);

    /// A word of an object; nullopt: it can't be read.
    [[nodiscard]] std::optional<uint64_t> field(uint64_t object, int32_t offset) {
        return memory_.word(object - 1 + static_cast<uint64_t>(int64_t{offset}));
    }
    /// What an object's map says of its type.
    [[nodiscard]] std::optional<int32_t> type(uint64_t object);
    [[nodiscard]] bool is(uint64_t object, int32_t type);
    /// Where an object is that was moved a moment ago, or is still.
    [[nodiscard]] uint64_t moved(uint64_t object);

  private:
    struct Flat { // a string's characters, where they lie in one piece
        uint64_t chars;
        uint32_t length;
        bool one_byte;
    };
    [[nodiscard]] bool is_string(uint64_t object);
    [[nodiscard]] std::optional<Flat> flat(uint64_t string);
    [[nodiscard]] bool append(uint64_t string, std::string &to, int depth);
    [[nodiscard]] bool read_scope(uint64_t scope, Function &out);

    Memory &memory_;
    const Layout &layout_;
};

/// The number of the line, from 1, that a position lies in. PURE.
[[nodiscard]] uint32_t line_of(const std::vector<uint32_t> &line_ends, int32_t position);
/// And where in it, from 1. PURE.
[[nodiscard]] uint32_t column_of(const std::vector<uint32_t> &line_ends, int32_t position);

} // namespace rawbpf::inline v0::languages::v8
