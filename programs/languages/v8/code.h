// Where in the source a frame is: of what the interpreter runs, of baseline code, of optimised code with what was inlined there.
//
//      interpreter   a frame's words: BytecodeArray (or the function's), offset in it --> its table of positions
//      baseline      pc - where the code begins --> its table of bytecodes --> offset in its BytecodeArray --> as above
//      optimised     pc - where the code begins --> its table of positions, with inlinings --> functions that were inlined
//                    of calls that aren't inlined, where Maglev made the code: its exits --> offset in the BytecodeArray (exits.h)
//
// Machine code lies behind a header, an object of its own, which is looked for from pc downwards. What the file doesn't say of
// fields (layout.h) is the same since V8 10, and proves itself: a table of positions decodes as a whole (positions.h).
//
//      header: map | ... | pointer to Code, which has where the machine code begins ...     before V8 11 it is Code itself
//      Code:   map | ... | BytecodeArray, or what optimised code has for going back | table: the last array of bytes | ...
//      what is for going back, an array: | ... the function, or what points to it | list of those that were inlined first | ... table of inlinings: the last
//                                          array of bytes of the first twelve | ...
//
// Everything is bounded, as in heap.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "programs/languages/memory.h"
#include "programs/languages/v8/heap.h"
#include "programs/languages/v8/layout.h"
#include "programs/languages/v8/positions.h"

namespace rawbpf::inline v0::languages::v8 {

/// Machine code that V8 has made. Words as they are in the heap.
struct Code {
    uint64_t header = 0, code = 0;
    uint64_t begin = 0; ///< the address of its first instruction
    uint64_t back = 0;  ///< a BytecodeArray, or what optimised code has for going back
    uint64_t table = 0;
    [[nodiscard]] bool operator==(const Code &other) const = default;
};

/// A function, and where in the source it runs.
struct Spot {
    Shared function;
    int32_t text = -1; ///< characters; -1: unknown
};

/// How a frame's code was made.
enum class Tier : uint8_t { interpreted, baseline, optimised };

class CodeReader {
  public:
    /// `sizes`: nullptr: not known, so baseline code isn't read.
    CodeReader(Memory &memory, Heap &heap, const CodeLayout &layout, const Layout &objects, const BytecodeSizes *sizes)
        : memory_(memory), heap_(heap), layout_(layout), objects_(objects), sizes_(sizes) {}

    /// Of a frame of the interpreter's, by the words that it has; where its bytecodes have moved since, by the function's.
    /// `source`: characters of the function's source. nullopt: they are not such words, or there is no table.
    [[nodiscard]] std::optional<int32_t> interpreted(const Shared &function, uint64_t bytecodes, uint64_t offset,
                                                     uint32_t source);
    /// The code that an address is in; nullopt: none that V8 has made of JavaScript.
    [[nodiscard]] std::optional<Code> code_at(uint64_t pc);
    /// Whether the same code is still there.
    [[nodiscard]] bool is_there(const Code &code);
    [[nodiscard]] Tier tier(const Code &code);
    /// Whether it is of this function, which has these bytecodes, if its frame says so.
    [[nodiscard]] bool is_of(const Code &code, const Shared &function, uint64_t bytecodes);
    /// The functions at an address in it, the innermost first, and last `function`, whose code it is. Empty: nothing proved to be
    /// the table.
    [[nodiscard]] std::vector<Spot> spots(const Code &code, uint64_t pc, const Shared &function, uint32_t source);

  private:
    [[nodiscard]] std::optional<Code> code_of(uint64_t header);
    [[nodiscard]] bool is_bytes(uint64_t object);
    [[nodiscard]] std::optional<std::vector<std::byte>> contents(uint64_t array, int32_t data, int32_t least);
    [[nodiscard]] std::optional<std::vector<std::byte>> bytes(uint64_t array);
    [[nodiscard]] std::optional<std::vector<std::byte>> bytecodes(uint64_t array);
    [[nodiscard]] std::optional<int32_t> text_at(uint64_t bytecodes, int32_t offset, uint32_t source);
    [[nodiscard]] std::optional<std::vector<Shared>> functions(uint64_t back, const std::vector<Inlining> &inlinings);
    [[nodiscard]] std::optional<uint64_t> bytecodes_of(const Shared &function);
    [[nodiscard]] std::optional<int32_t> text_of_call(const Code &code, uint32_t at, const Shared &function, uint32_t source);

    Memory &memory_;
    Heap &heap_;
    const CodeLayout &layout_;
    const Layout &objects_;
    const BytecodeSizes *sizes_;
};

} // namespace rawbpf::inline v0::languages::v8
