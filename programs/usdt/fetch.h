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
/// (5.5). An argument with a problem must not be asked for; it gives 0. `sleepable`: the program may wait for a page that isn't
/// there yet (uprobe.s, 6.0).
void emit_argument(Code &code, WritableReg dst, Reg context, const Argument &argument, bool sleepable = false);

/// How many instructions that takes; 0 for one with a problem.
[[nodiscard]] size_t count_instructions(const Argument &argument);

/// Those instructions as the assembler writes them, with comments; none for one with a problem. A file of its own (explain.cpp),
/// since an executable that doesn't call it does without the printer.
[[nodiscard]] std::vector<std::string> explain_argument(const Argument &argument);
/// The same where an executable has it, else nullptr.
using Explain = std::vector<std::string> (*)(const Argument &);

/// A program that fetches that argument only, its context in r6, into r7; two instructions before it, two behind.
[[nodiscard]] Built fetching_program(const Argument &argument);

} // namespace rawbpf::inline v0::usdt
