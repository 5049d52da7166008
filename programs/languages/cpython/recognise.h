// Whether a file is a CPython interpreter: python3 itself, libpython3.so, or a program with one in it. Told by what it exports,
// not by its name. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/elf/elf.h"

namespace rawbpf::inline v0::languages::cpython {

/// Addresses as the file has them; 0: it doesn't say.
struct Interpreter {
    uint64_t code_type = 0, frame_type = 0, none = 0; ///< PyCode_Type, PyFrame_Type, _Py_NoneStruct
    uint32_t version = 0;                             ///< Py_Version's value
    struct Range {
        uint64_t start, end;
    };
    std::vector<elf::Segment> code; ///< its executable parts
    std::vector<Range> evaluates;   ///< offsets in the file: code that runs Python's functions, its cold part as well
};

/// nullopt: it isn't one.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::cpython
