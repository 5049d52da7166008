// Through the kernel's own addresses: what the walk does while a uretprobe waits, or a probed instruction is run.
#pragma once

#include "asm/code.h"
#include "runtime/unwind/machines.h"

namespace rawbpf::inline v0 {

/// Where UnwindState has what these need.
struct ReturnProbesPlace {
    Mem returns, trampoline;
};

/// At the beginning of a walk, in the current thread: the first of its taken addresses. r0 to r5 are gone.
void begin_return_probes(Code &g, const ReturnProbesPlace &place);
/// r1 is a return address, and r7 the CFA of the frame that it was found in: where it is the trampoline's, the one that it stands
/// for; 0 where that isn't known. r0, r2 to r5, r8 are gone.
void original_return_address(Code &g, const ReturnProbesPlace &place, const unwind::Machine &machine);

/// The first frame's registers in the page where the kernel runs a probed instruction: `pc` and `address` become the
/// instruction's own. In the current thread; `word` is 8 bytes to work with. r0 to r5 are gone.
void leave_probed_instruction(Code &g, Mem pc, Mem address, Mem word);

} // namespace rawbpf::inline v0
