// What `encode` and `decode` show of instructions: pictures for people, a line each for programs.
#pragma once

#include <span>
#include <string>

#include "asm/insn.h"
#include "cli/options.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// Pictures, an empty line between two; with `json`, NDJSON with a header. `undefined` is told whether one of them is no
/// instruction.
[[nodiscard]] Result<std::string> show_bits(std::span<const Insn> insns, const Arguments &a, bool json, bool &undefined);

} // namespace rawbpf::inline v0::cli
