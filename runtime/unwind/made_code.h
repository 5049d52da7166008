// How frames are left in code that a just-in-time compiler has made, by the .eh_frame that it has written of it. PURE.
#pragma once

#include <cstdint>
#include <optional>

#include "asm/machines.h"
#include "runtime/base/bytes.h"
#include "runtime/unwind/layout.h"

namespace rawbpf::inline v0::unwind {

/// The rule for a frame that stands at `pc`. `eh_frame`: the section's bytes, which lies at `address` or would; what it says of
/// code is relative to that. nullopt: no entry is of that code, the one that is is malformed, or the machine has no row in
/// kMachines.
[[nodiscard]] std::optional<UnwindRule> rule_of_made_code(Arch arch, Bytes eh_frame, uint64_t address, uint64_t pc);

} // namespace rawbpf::inline v0::unwind
