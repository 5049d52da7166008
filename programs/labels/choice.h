// Which labels a tool's programs read, as choice.h of programs/languages has it of interpreters' frames.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/labels/read_dsl.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// What the values of these keys are read from, on this machine and kernel; nullopt: there are no keys. Somebody asked for them
/// by name, so a result without is no answer. Errors: unsupported; the kernel has no BTF.
[[nodiscard]] Result<std::optional<LabelParts>> choose_labels(const std::vector<std::string> &keys);

} // namespace rawbpf::inline v0
