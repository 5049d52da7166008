// Where a function's instructions begin, and which of them return, for probes there. PURE.
// Private to the room, and programs/trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// Bytes of the x86_64 instruction that `code` begins with; 0: none that is known here, or it is cut.
[[nodiscard]] size_t x86_instruction_length(Bytes code);

/// Distances of a whole function's return instructions from its start; nullopt where its code can't be told apart.
/// `machine`: EM_X86_64 or EM_AARCH64.
[[nodiscard]] std::optional<std::vector<uint64_t>> return_instructions(Bytes code, uint16_t machine);

/// Where the instruction begins that the byte at `offset` belongs to, by going through the code from its first byte; nullopt
/// where that can't be told.
[[nodiscard]] std::optional<uint64_t> instruction_with(Bytes code, uint64_t offset, uint16_t machine);

/// Bytes of what Go's functions begin with: whether the stack has room. Where it hasn't, or the scheduler wants the processor,
/// the runtime sees to it and the function begins again. 0: this one doesn't ask.
[[nodiscard]] size_t go_stack_check(Bytes code, uint16_t machine);

} // namespace rawbpf::inline v0
