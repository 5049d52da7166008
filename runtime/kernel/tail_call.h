// SPDX-License-Identifier: MIT
// Puts programs into prog arrays, the targets of bpf_tail_call.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0 {

/// `array`[slot] = a loaded program (BPF_MAP_UPDATE_ELEM). The array is emptied when its last descriptor outside of programs, or
/// pin, is closed, even while programs jump through it: keep it as long as anything is attached that does. `jumper`: the program
/// that jumps through the array, where it is at hand: the kernel doesn't say which attach type an array is for.
/// Errors: invalid_argument when the program is of another kind than the array's (the text says in which property they differ:
/// type, attach type, jited or not), or the map no prog array, or the descriptor no program, or the slot beyond its end.
[[nodiscard]] Result<void> put_program(const Map &array, uint32_t slot, int program_fd, const Program *jumper = nullptr,
                                       const Program *jumped_to = nullptr);

} // namespace rawbpf::inline v0
