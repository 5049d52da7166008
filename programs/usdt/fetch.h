// An argument as the few BPF instructions that fetch it.
#pragma once

#include <string>
#include <vector>

#include "asm/builder.h"
#include "runtime/usdt/arguments.h"

namespace rawbpf::inline v0::usdt {

/// Whether an argument lies in the process's memory, so that fetching it can fail.
[[nodiscard]] bool is_in_memory(const Argument &argument);

/// dst = the argument, extended to 64 bits by its sign (floating point: its bits). `context`: one of r6 to r9, with the program's
/// r1 (struct pt_regs). What lies in memory costs r0 to r5: afterwards r0 is 0, or -errno where it can't be read, and dst 0 then
/// (5.5). An argument with a problem must not be asked for; it gives 0.
void emit_argument(Code &code, WritableReg dst, Reg context, const Argument &argument);

/// Those instructions, with the context in r6, into r7, as the assembler writes them, with comments; none for one with a problem.
[[nodiscard]] std::vector<std::string> explain_argument(const Argument &argument);

} // namespace rawbpf::inline v0::usdt
