// SPDX-License-Identifier: MIT
// Finds the line of source that an instruction comes from.
#pragma once

#include <string>

#include "runtime/object/spec.h"

namespace rawbpf::inline v0::emulator {

/// A line of source.
struct Source {
    std::string file;  ///< as the compiler was given it; empty: unknown
    uint32_t line = 0; ///< from 1; 0: unknown
    std::string text;  ///< the line itself, without the spaces in front
    uint32_t insn = 0; ///< the first instruction of the line
};
/// From the program's line information; all empty where it has none.
[[nodiscard]] Source source_of(const ObjectSpec &spec, const ProgramSpec &program, size_t insn);
/// The function that an instruction belongs to: a subprogram's name, or the program's.
[[nodiscard]] std::string_view function_of(const ProgramSpec &program, size_t insn);

} // namespace rawbpf::inline v0::emulator
