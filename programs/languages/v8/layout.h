// Where everything lies in V8's objects, as the file that has it in says: its symbols v8dbg_*
// (deps/v8/tools/gen-postmortem-metadata.py), which debuggers of core files read. Each is a variable of type int in the file's
// data.
//
//      v8dbg_class_JSFunction__shared__SharedFunctionInfo   24     a field's offset from the object's beginning
//      v8dbg_type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE  262     what an object's map says of its type
//      v8dbg_off_fp_function   -16                          a word of a frame, from its frame pointer
//
// A symbol's last part is the field's type in C++, which other versions spell in other ways, so it isn't asked for. There is no
// table by version: what isn't told is stated where it is used (heap.h), and proves itself by the types of what it leads to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/languages/v8/positions.h"
#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::languages::v8 {

/// What leads from a frame to the place in the source that runs (code.h).
struct CodeLayout {
    // A frame's words, as bytes from its frame pointer: of the interpreter's.
    int32_t bytecodes = 0, offset = 0; ///< its BytecodeArray; where in that it is
    // Bytes from an object's beginning.
    int32_t bytecodes_data = 0;
    int32_t begin = 0;                ///< of an object with machine code: that
    std::optional<int32_t> code_size; ///< of what tells of it: a number of four bytes
    // Instance types.
    int32_t bytecodes_type = 0;
    int32_t bytes_type = 0, trusted_bytes_type = 0; ///< arrays of bytes; before V8 12 there is one kind
    std::optional<int32_t> code_type;               ///< of what has machine code in it; before V8 11 that isn't told,
    std::optional<int32_t> container_type;          ///< but of an object that it then has a pointer to
};

struct Layout {
    // A frame's words, as bytes from its frame pointer.
    int32_t context = 0;  ///< a pointer to the context; a small integer where the frame is none of a function's
    int32_t function = 0; ///< the JSFunction
    // Bytes from an object's beginning.
    int32_t map = 0, instance_type = 0; ///< of every object; of its map
    int32_t shared = 0;                 ///< of a JSFunction: its SharedFunctionInfo
    int32_t name_or_scope = 0, script = 0;
    int32_t script_name = 0, script_source = 0, line_ends = 0;
    int32_t string_length = 0, one_byte_chars = 0, two_byte_chars = 0;
    int32_t cons_first = 0, cons_second = 0, sliced_parent = 0, sliced_offset = 0, thin_actual = 0, resource = 0;
    int32_t array_length = 0, array_data = 0;
    // Instance types.
    int32_t first_function = 0, last_function = 0;
    int32_t shared_type = 0, script_type = 0, scope_type = 0, array_type = 0;
    int32_t first_nonstring = 0;
    int32_t representation_mask = 0, one_byte = 0;        ///< of a string's type
    int32_t cons = 0, sliced = 0, thin = 0, external = 0; ///< representations; 0 is the characters themselves
    // Of a ScopeInfo, in words behind its map.
    int32_t scope_locals = 0, scope_first = 0; ///< how many variables lie in the context; where what has no fixed place begins
    std::optional<CodeLayout> code{};          ///< nullopt: the file doesn't tell of it
};

/// A file that has V8 in it, or says so.
struct File {
    std::vector<elf::Segment> code; ///< its executable parts
    std::optional<Layout> layout;
    std::string why;                    ///< there is none: half a sentence
    std::string why_no_lines;           ///< Layout::code is missing: half a sentence
    std::optional<BytecodeSizes> sizes; ///< nullopt: not found
    size_t told = 0;                    ///< symbols
};

/// nullopt: it isn't one. PURE.
[[nodiscard]] std::optional<File> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::v8
