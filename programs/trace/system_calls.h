// The numbers of system calls, by the names that tracefs has for them. PURE.
#pragma once

#include <cstdint>
#include <string_view>

#include "asm/machines.h"

namespace rawbpf::inline v0::trace {

/// The number of the system call that tracefs knows as sys_enter_NAME ("openat", "newfstat"); -1 where the machine has none, or
/// one that is newer than this table, which has none of 32-bit machines. arm64 and riscv64 have the same (asm-generic/unistd.h).
[[nodiscard]] int32_t system_call_number(std::string_view name, Arch arch = kHostArch);

/// The name of the system call with that number there; empty where the table has none.
[[nodiscard]] std::string_view system_call_name(int32_t number, Arch arch = kHostArch);

/// One more than the highest number in the table, of all machines.
[[nodiscard]] uint32_t system_call_numbers();

/// What the programs at sys_enter and sys_exit find under a number, in the map trace_system_calls.
struct SystemCall {
    struct End {
        uint32_t place_and_one = 0; ///< index among the places, and one; 0: this end of this call isn't traced
        uint32_t program = 0;       ///< which one goes on: a slot of trace_programs
    } enter, exit;
};

} // namespace rawbpf::inline v0::trace
