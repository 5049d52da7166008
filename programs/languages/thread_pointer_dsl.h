// Where the current thread keeps its own data, in a program: the register that user code finds it by, as the kernel saved it.
#pragma once

#include "asm/builder.h"

namespace rawbpf::inline v0 {

/// Machines of which it is known where the kernel keeps it.
[[nodiscard]] constexpr bool knows_thread_pointer(Arch arch) { return arch == Arch::x86_64 || arch == Arch::arm64; }

/// r1 = it. r0 and r2 to r5 are gone. Needs the kernel's BTF.
inline void load_thread_pointer(Code &f, Arch arch) {
    f.call(helper::get_current_task);
    if (arch == Arch::arm64)
        f.read_field<uint64_t>(r1, r0, "task_struct.thread.uw.tp_value");
    else
        f.read_field<uint64_t>(r1, r0, "task_struct.thread.fsbase");
}

} // namespace rawbpf::inline v0
