// SPDX-License-Identifier: MIT
// Instructions as text, in three dialects:
//
//      llvm           r1 += 5       if r0 == 0 goto +3       *(u32 *)(r10 - 4) = r6         assembles back to the same bytes
//      kernel         (07) r1 += 5  (15) if r0 == 0x0 goto pc+3  (63) *(u32 *)(r10 -4) = r6    as the verifier and bpftool print
//      conformance    add %r1, 5    jeq %r0, 0, +3           stxw [%r10-4], %r6             as the conformance suite and ubpf do
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "asm/insn.h"
#include "asm/unit.h"

namespace rawbpf::inline v0 {

/// Whose way of writing instructions; the head of print.h shows each.
enum class Dialect : uint8_t {
    llvm,       ///< llvm-objdump's and llvm-mc's; listings of it are source for assemble()
    kernel,     ///< the verifier's and bpftool's (kernel/bpf/disasm.c)
    conformance ///< the bpf_conformance project's and ubpf's
};

/// How instructions are written.
struct PrintStyle {
    bool hex = false;                ///< llvm: numbers as llvm-objdump writes them, "0x10" and "-0x8"; else decimal
    bool numbers = false;            ///< listings: the instruction's index in front
    bool bytes = false;              ///< listings: index and bytes in front, as llvm-objdump has them
    bool locations = false;          ///< listings: a comment with file and line wherever they change
    Dialect dialect = Dialect::llvm; ///< whose way
};

/// What the text says in a number's place; empty: the number. The views must stay valid during the call.
struct PrintNames {
    std::string_view wide;   ///< ld_imm64: what it means
    std::string_view call;   ///< the function called
    std::string_view target; ///< where a jump goes
    std::string_view field;  ///< what an offset or immediate is, CO-RE: "@task_struct.pid"
};

/// Appends the first instruction of `at` (ld_imm64 takes two). What is no instruction is written as its bytes, ".8byte 0x...";
/// nothing for an empty span. Calls inside the program and kernel functions, which LLVM leaves to the relocation, are written
/// "call +3" and "call kfunc 123"; ld_imm64 of something else than a number names it: "r1 = map 5 ll".
void append_insn(std::string &out, std::span<const Insn> at, PrintStyle style = {}, const PrintNames &names = {});
/// The same as a new string.
[[nodiscard]] std::string print(std::span<const Insn> at, PrintStyle style = {});

/// Whether the assembler takes what the llvm dialect says of the first instruction. False for what is no instruction, and for
/// what the assembler refuses on purpose: r10 written, r11 to r15, shifts by the width, divisions by a constant zero. False for
/// an empty span.
[[nodiscard]] bool assembles(std::span<const Insn> at);

/// An instruction of a listing.
struct ListedInsn {
    uint32_t insn = 0;   ///< its index in Function::insns
    uint32_t slots = 1;  ///< 2: ld_imm64
    std::string label;   ///< "L3"; empty: no jump goes here
    std::string text;    ///< with the names that its references give
    std::string comment; ///< its note, and what bytes say that are no instruction; empty: nothing
};
/// The instructions of a function, in order. Of `style` the dialect and `hex` count.
[[nodiscard]] std::vector<ListedInsn> list(const Function &function, PrintStyle style = {});

/// A function as a listing: one instruction a line with the names that its references give (maps, functions, helpers), labels
/// "L3:" where jumps go, and its notes as comments.
[[nodiscard]] std::string print(const Function &function, PrintStyle style = {});

/// The whole unit: license, maps, functions. In the llvm dialect it is source for assemble(). Structs and variables are not
/// written; the maps that hold variables are, with their contents.
[[nodiscard]] std::string print(const Unit &unit, PrintStyle style = {});

/// The functions as graphs of basic blocks, in Graphviz's language.
[[nodiscard]] std::string print_graph(const Unit &unit, PrintStyle style = {});

/// A name as the assembler takes it. What is no letter, digit, underscore, dot or dollar sign becomes an underscore; one more is
/// put in front of a name that is empty or begins with a digit.
[[nodiscard]] std::string plain_symbol(std::string_view name);

/// "ringbuf" for 27; "type 99" for one that isn't known.
[[nodiscard]] std::string map_kind_name(uint32_t type);
/// 27 for "ringbuf"; -1 for a name that isn't known.
[[nodiscard]] int find_map_kind(std::string_view name);
/// All of those names, by number. Valid for ever.
[[nodiscard]] std::span<const std::string_view> map_kind_names();

} // namespace rawbpf::inline v0
