// Types of a BTF as JSON lines. PURE.
#pragma once

#include <string>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::inspect {

/// {"type":"btf","id","kind","name",...}: the kind's own fields with the kernel's words ("size", "type_id", "members", "values",
/// "params", "linkage" ...); names that a type doesn't have are null. 64-bit values of enums are strings where they pass 2^53.
/// Errors: broken BTF.
[[nodiscard]] Result<void> append_type_json(std::string &out, const btf::Btf &btf, btf::TypeId id);

} // namespace rawbpf::inline v0::inspect
