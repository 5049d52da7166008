// SPDX-License-Identifier: MIT
// Converts a spec back into a unit, for disassembly.
#pragma once

#include "asm/unit.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0 {

/// Each program with its functions taken apart, each function once; references by name (maps, kernel functions, functions),
/// source lines where the object has them, CO-RE relocations as notes. Errors: bad_input where the object's BTF is damaged.
[[nodiscard]] Result<Unit> unit_of(const ObjectSpec &spec);

} // namespace rawbpf::inline v0
