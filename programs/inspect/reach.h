// Finds the instructions that a verifier can reach. PURE.
#pragma once

#include <span>
#include <vector>

#include "asm/insn.h"

namespace rawbpf::inline v0::inspect {

/// One flag an instruction: false where no path leads from the first one to it, given the numbers that are known at load time.
/// Follows calls inside the program and callbacks. May say true wrongly, never false: what is loaded from memory is unknown to
/// it.
[[nodiscard]] std::vector<bool> reachable(std::span<const Insn> insns);

} // namespace rawbpf::inline v0::inspect
