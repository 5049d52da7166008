// An object file before it is loaded: what it holds and what it will ask the kernel for. PURE.
#pragma once

#include <string>

#include "runtime/base/bytes.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::inspect {

/// Sections, programs, maps, global variables, externs and relocations, a table each. Errors: broken BTF in the spec, a broken
/// file.
[[nodiscard]] Result<std::string> object_text(const ObjectSpec &spec, Bytes elf);

/// The same as JSON lines: "object", "section", "program", "map", "global", "extern", "relocation".
[[nodiscard]] Result<std::string> object_json(const ObjectSpec &spec, Bytes elf);

} // namespace rawbpf::inline v0::inspect
