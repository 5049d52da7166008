// Instructions as text, in LLVM's pseudo-C: "r1 += 5", "if r0 == 0 goto +3", "*(u32 *)(r10 - 4) = r6".
#pragma once

#include <span>
#include <string>

#include "asm/insn.h"
#include "asm/unit.h"

namespace rawbpf::inline v0 {

struct PrintStyle {
    bool hex = false;       ///< numbers as llvm-objdump writes them, "0x10" and "-0x8"; else decimal
    bool numbers = false;   ///< listings: the instruction's index in front
    bool locations = false; ///< listings: a comment with file and line wherever they change
};

/// The first instruction of `at` (ld_imm64 takes two). What is no instruction is printed as its bytes, ".8byte 0x...";
/// nothing for an empty span. Calls inside the program and kernel functions, which LLVM leaves to the relocation, are written
/// "call +3" and "call kfunc 123"; ld_imm64 of something else than a number names it: "r1 = map_fd 5 ll".
[[nodiscard]] std::string print(std::span<const Insn> at, PrintStyle style = {});

/// A function as a listing: one instruction a line with the names that its references give (maps, functions, helpers), labels
/// "L3:" where jumps go, and its notes as comments.
[[nodiscard]] std::string print(const Function &function, PrintStyle style = {});

/// The whole unit: license, maps, functions.
[[nodiscard]] std::string print(const Unit &unit, PrintStyle style = {});

/// "ringbuf" for 27; "type 99" for one that isn't known.
[[nodiscard]] std::string map_kind_name(uint32_t type);

} // namespace rawbpf::inline v0
