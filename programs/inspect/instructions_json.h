// The instructions of a unit, and the machine code of a loaded program, as JSON lines: what `disasm` and `prog dump` print for
// scripts.
#pragma once

#include <string>
#include <vector>

#include "asm/print.h"
#include "asm/unit.h"
#include "programs/inspect/machine_code.h"

namespace rawbpf::inline v0::inspect {

/// One line a function, with its name and its section (null for a subprogram), and one an instruction: its function, its index,
/// its bytes in hexadecimal (8, ld_imm64 16), its text, its label (null: no jump goes here), its comment (null: none), and file,
/// line and source text (null where they aren't known). Of `style` the dialect and `hex` count.
[[nodiscard]] std::string instructions_json(const Unit &unit, PrintStyle style = {});

/// One line a function: its name, its address (null: the kernel doesn't say), its code in hexadecimal, and the source lines that
/// begin in it, with their offsets.
[[nodiscard]] std::string machine_json(const std::vector<MachineFunction> &functions);

} // namespace rawbpf::inline v0::inspect
