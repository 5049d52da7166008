// "Did you mean", if the kernel has no such function, member or enumerator. Part of the loader.
#pragma once

#include <string>
#include <string_view>

#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {

/// Of the kernel's functions (of those that begin with bpf_, where the name does): "did you mean `bpf_task_from_pid`?", or empty.
[[nodiscard]] std::string near_kernel_function(const btf::Btf &kernel, std::string_view name);

/// The same of types of that kind whose names begin with `prefix`, without it: ("bpf_iter_", "tsk") -> "did you mean `task`?".
[[nodiscard]] std::string near_target(const btf::Btf &kernel, btf::Kind kind, std::string_view prefix, std::string_view name);

/// For "struct task_struct has no field pidd", as CO-RE says it, and the same of unions and enums: "did you mean `pid`?", or
/// empty.
[[nodiscard]] std::string near_member(const btf::Btf &kernel, std::string_view why);

/// PURE. The same words about a register's place, which another architecture's kernel has: "struct user_pt_regs is how arm64
/// keeps registers: the object was compiled for another machine than this ...", or empty. `here`: as uname calls this machine.
/// Source: PT_REGS_* of each architecture's arch/*/include/uapi/asm/ptrace.h.
[[nodiscard]] std::string registers_of_another_machine(std::string_view why, std::string_view here);

} // namespace rawbpf::inline v0
