// SPDX-License-Identifier: MIT
// A CO-RE relocation in words, without a target.
#pragma once

#include <string>

#include "runtime/object/core.h"

namespace rawbpf::inline v0 {

/// "struct task_struct.mm.total_vm". Errors: an access string that doesn't go with the local types.
[[nodiscard]] Result<std::string> describe_core(const btf::Btf &local, const CoreRelocation &relocation);

} // namespace rawbpf::inline v0
