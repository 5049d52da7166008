// Reads the result of a probe for a helper. Private to this folder; the reading itself is PURE and tested without a kernel.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/kernel/probe_load.h"

namespace rawbpf::inline v0 {

enum class HelperAnswer : uint8_t {
    yes,
    not_here, ///< the kernel has it, this program may not call it
    unknown,  ///< the kernel doesn't have it
    silence,  ///< the verifier was never asked
};
/// From the verifier's log of `call HELPER; exit`. PURE.
[[nodiscard]] HelperAnswer read_helper_log(const std::string &log);
[[nodiscard]] HelperAnswer ask_helper(TinyProgram program, uint32_t id);
/// Whether programs of that type may call it; unasked where the verifier was never asked.
[[nodiscard]] Probed probe_helper_in(uint32_t program_type, uint32_t id);
void forget_helpers();

} // namespace rawbpf::inline v0
