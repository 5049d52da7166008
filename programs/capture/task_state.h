// Where a thread's state stands in the kernel's struct task_struct: what the programs at a switch read of the thread that leaves.
#pragma once

#include "asm/builder.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// TASK_DEAD of the kernel's include/linux/sched.h: the thread leaves its CPU for the last time.
inline constexpr int kTaskDead = 0x80;

/// Whether struct task_struct has `long state` (before 5.14), not `unsigned __state`. Errors: those of kernel_btf(); unsupported.
[[nodiscard]] Result<bool> has_wide_state();

/// to = the state of the thread of which `task` has the address; 0: it runs, or could. r1 to r5 are gone.
void read_state(Code &f, WritableReg to, Reg task, bool wide);

} // namespace rawbpf::inline v0
