// Where DWARF says that a parameter is when its function begins. PURE.
#pragma once

#include <cstdint>
#include <optional>

#include "programs/trace/go_abi.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

/// What .debug_loc (DWARF 4) or .debug_loclists (5) has at `offset` for `address`; empty: nothing. `base`: the unit's.
[[nodiscard]] Bytes location_at(Bytes lists, uint64_t offset, uint64_t address, uint64_t base, bool version5);

/// Where on the stack an expression says it is, in bytes behind the return address; nullopt: it isn't, or isn't there alone, or
/// not where a caller puts arguments.
[[nodiscard]] std::optional<uint32_t> place_on_stack(Bytes expression, uint16_t machine);

/// The first register of what an expression describes; nullopt: none that arguments are in. `machine`: EM_X86_64, EM_AARCH64.
[[nodiscard]] std::optional<GoVariable::Known> first_register(Bytes expression, uint16_t machine);

} // namespace rawbpf::inline v0::trace
