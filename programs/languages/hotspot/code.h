// The code that HotSpot has made: whose it is, and how its frames look. Read from the heaps that it lies in.
//
//      CodeCache._heaps --> CodeHeap { _memory [low .. high), _segmap, _log2_segment_size }
//      _memory   | HeapBlock: length, used | CodeBlob: name, code [begin .. end), frame size | code | HeapBlock ...
//      nmethod (a CodeBlob of a method) --> Method: its name (lines.h); what was inlined there (scopes.h)
//
// All frames in the code of one blob are alike, once they are set up, so a blob is one or two rows of an unwind table:
//
//      begin .. +frame_complete    the return address on top of the stack
//      up to the end               frame_size words, the upper two being the caller's frame pointer and the return address
//      the interpreter's           by the frame pointer; the stack pointer that its caller had lies below it, and which method runs
//
// What the tables of the virtual machine (vm_structs.h) don't say is at the place where it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "programs/languages/hotspot/lines.h"
#include "programs/languages/hotspot/scopes.h"
#include "programs/languages/hotspot/vm_structs.h"
#include "programs/languages/memory.h"
#include "programs/unwind/walk.h"

namespace rawbpf::inline v0::languages::hotspot {

/// Where everything lies in a virtual machine's structures.
struct Offsets {
    uint64_t heaps = 0;    ///< the address of the pointer to the array of heaps
    bool one_heap = false; ///< it is that of the only one (before JDK 9)
    Number heap_count, heap_array;
    uint64_t memory = 0, segments = 0; ///< of a heap: its VirtualSpaces
    Number segment_bits;
    Number low, high, reserved_low, reserved_high; ///< of a VirtualSpace
    Number block_length, block_used;
    uint64_t block_bytes = 0; ///< in front of what is in it
    Number blob_name, blob_frame_size, blob_frame_complete;
    Number code_begin, code_end;
    bool code_by_offset = false; ///< these two are bytes from the blob's beginning
    Number method, compile_id;   ///< of an nmethod
    MethodOffsets methods;
    std::optional<ScopeOffsets> scopes; ///< nullopt: this virtual machine doesn't tell of them
};

/// nullopt: `why` says what is missing (half a sentence). PURE.
[[nodiscard]] std::optional<Offsets> layout_of(const VmStructs &structs, std::string &why);

enum class Kind : uint8_t {
    method,      ///< a compiled one, or the way into a native one
    interpreter, ///< all its code
    stub,        ///< with a frame of its own
    frameless,   ///< that jumps on, and leaves the stack as it is
    routine,     ///< anything else
};

/// A piece of code.
struct Code {
    uint64_t at = 0; ///< its blob's address
    uint64_t begin = 0, end = 0;
    uint64_t method = 0;      ///< of kind method: the Method's address
    uint32_t frame_words = 0; ///< 0: it has no frame of one size
    uint32_t complete = 0;    ///< bytes from the beginning: from there on the frame is set up
    uint32_t compile_id = 0;  ///< counts up with each method that is compiled
    int16_t position = 0; ///< of kind interpreter: where its frames keep the bytecode's address, in words from the frame pointer
    Kind kind = Kind::routine;
    std::string name; ///< of all but methods

    /// The same function's, as it was read before.
    [[nodiscard]] bool is(const Code &other) const {
        return begin == other.begin && end == other.end && method == other.method && compile_id == other.compile_id;
    }
};

/// Memory that is kept for code.
struct Heap {
    uint64_t begin, end;     ///< all of it
    uint64_t low, high;      ///< what can hold code now
    uint64_t list, segments; ///< the CodeHeap; its map of segments: 0 where a block begins
    uint32_t segment_bits;
};

/// nullopt: there are none yet, or they make no sense. At most 16.
[[nodiscard]] std::optional<std::vector<Heap>> read_heaps(Memory &memory, const Offsets &layout);

/// All code in the heaps, ascending. What can't be read, or makes no sense, ends a heap's list early; it is bounded.
[[nodiscard]] std::vector<Code> read_code(Memory &memory, const Offsets &layout, const std::vector<Heap> &heaps);

/// The code at one address, which the map of segments leads to; nullopt: none, or it makes no sense. For what was compiled since
/// the list was read.
[[nodiscard]] std::optional<Code> read_code_at(Memory &memory, const Offsets &layout, const std::vector<Heap> &heaps,
                                               uint64_t pc);

/// Whether a return address is where a virtual thread's frames go on in the heap (JDK 21): such a thread gets back some of them
/// at a time, and the last one returns to code that asks for more. No call stands before that address.
[[nodiscard]] bool is_return_barrier(Memory &memory, const Code &code, uint64_t address);

/// Puts it into an ascending list, in the place of what it lies over. PURE.
void put_code(std::vector<Code> &list, Code code);

/// Whether a method's code is still there, or others in its place.
[[nodiscard]] bool is_there(Memory &memory, const Offsets &layout, const Code &code);

/// How a frame is left whose address is `pc`. PURE.
[[nodiscard]] unwind::ListedRule rule_at(const Code &code, uint64_t pc);

/// The code at an address of an ascending list; nullptr. PURE.
[[nodiscard]] const Code *find_code(const std::vector<Code> &list, uint64_t pc);

} // namespace rawbpf::inline v0::languages::hotspot
