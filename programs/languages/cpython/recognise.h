// Whether a file is a CPython interpreter: python3 itself, libpython3.so, or a program with one in it. Told by what it exports,
// not by its name. PURE.
#pragma once

#include "programs/languages/runtime.h"

namespace rawbpf::inline v0::languages::cpython {

/// nullopt: it isn't one. Its version is Py_Version's value: 0x030b02f0 is 3.11.2; 0 is from before 3.11.
[[nodiscard]] std::optional<Interpreter> recognise(const elf::Elf &file, Bytes bytes);

} // namespace rawbpf::inline v0::languages::cpython
