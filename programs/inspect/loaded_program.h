// A program that the kernel has loaded, as a unit.
#pragma once

#include "asm/unit.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::inspect {

/// What the kernel runs (after its verifier rewrote it), with the names of functions from its BTF, of maps, and of helpers from
/// kallsyms; source lines where they were loaded along. Needs CAP_SYS_ADMIN; without CAP_PERFMON the kernel hides the
/// instructions (unsupported, said so). Errors: not_found for an id that nobody has.
[[nodiscard]] Result<Unit> loaded_program(uint32_t id);

} // namespace rawbpf::inline v0::inspect
