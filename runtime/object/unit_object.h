// SPDX-License-Identifier: MIT
// A unit of the DSL or the assembler as an ObjectSpec.
#pragma once

#include "asm/unit.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Functions with a section become programs, in the unit's order; those that they call are appended. The spec has BTF of its own:
/// a FUNC for every function, so that callbacks load, and line_info where the unit knows its source lines, so that the verifier
/// quotes them. A map whose name starts with a dot (".rodata") stands for a data section, as in an ELF object.
/// Errors: invalid_argument for a reference to something that the unit doesn't have, or a name that occurs twice.
[[nodiscard]] Result<ObjectSpec> object_of(const Unit &unit);

} // namespace rawbpf::inline v0
