// SPDX-License-Identifier: MIT
// Text into a Unit: the assembler.
//
//      .map counts hash key u32 value u64 entries 1024
//      .program on_tick "perf_event"
//          r1 = counts ll
//          if r0 == 0 goto out
//      out:
//          exit
//
// The main dialect is LLVM's pseudo-C. The assembler also reads what the kernel's verifier, bpftool, llvm-objdump and the
// conformance suite print; one text may mix them. asm/README.md has the grammar and the directives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "asm/insn.h"
#include "asm/unit.h"

namespace rawbpf::inline v0 {

/// A mistake in the source: where, what, and the line it is in.
struct Complaint {
    Diagnostic at;    ///< file, line, column (both are known here) and the message
    std::string line; ///< the source line, without its newline
    std::string hint; ///< what was probably meant; may be empty
};

/// What assemble() may be told. The views and pointers must stay valid until it returns.
struct AssembleOptions {
    std::string_view name = "asm"; ///< of the file, for complaints and line information; becomes Unit::name
    bool lines = true;             ///< Function::lines is filled
    /// For `.include`: reads the file into `text`; false: it can't be read, which is a complaint. nullptr: includes are refused.
    /// The path is as it is written. Files may include each other 16 deep, 256 in all.
    bool (*include)(void *context, std::string_view path, std::string &text) = nullptr;
    /// Whether a loader knows what such a section's programs are. For a section that it doesn't know there is a warning, with the
    /// hint. nullptr: all sections are known.
    bool (*section)(std::string_view section, std::string &hint) = nullptr;
    void *context = nullptr; ///< the first argument of include(); section() gets none
};

/// A label of the source: what a listing or a debugger calls a place.
struct LabelPlace {
    std::string function, ///< Function::name
        name;             ///< as it is written, without the colon
    uint32_t insn = 0;    ///< index into Function::insns; their number: the end of the function
};

/// What assemble() returns. True when there are no complaints; warnings do not count.
struct Assembled {
    Unit unit;                         ///< complete and valid only when there are no complaints
    std::vector<LabelPlace> labels;    ///< function by function
    std::vector<Complaint> complaints; ///< mistakes, 20 at most; those of one file by line
    /// What can be assembled but is surely a mistake: a jump out of its function, an end without an exit, a place outside of the
    /// stack, a section that no loader knows, a constant that looks like an assignment. 20 at most.
    std::vector<Complaint> warnings;
    /// True when there are no complaints.
    [[nodiscard]] explicit operator bool() const { return complaints.empty(); }
    /// All complaints as people read them, each with a line "hint: ..." where there is a hint. Empty without complaints.
    ///     prog.asm:3:1: r10 is the frame pointer and can't be written
    ///         3 | r10 = 5
    ///           | ^
    [[nodiscard, gnu::cold]] std::string report() const;
    /// The warnings in the same form: "prog.asm:3:1: warning: ..."
    [[nodiscard, gnu::cold]] std::string warning_report() const;
};

/// Assembles a text; asm/README.md has its grammar. Instructions without a `.program` become one program of section "socket" (a
/// socket filter) with the name "main". Reports up to 20 mistakes. Works in time proportional to the text; a unit may have
/// 1,000,000 instructions. The result does not refer to `text`.
[[nodiscard]] Assembled assemble(std::string_view text, const AssembleOptions &options = {});

/// The functions of a unit one behind the other, in the unit's order, calls aimed: what `exec -` takes. False, with a sentence in
/// `why`, when something has to be loaded first (maps, kernel functions, fields of kernel structs).
[[nodiscard]] bool flatten(const Unit &unit, std::vector<Insn> &insns, std::string &why);

} // namespace rawbpf::inline v0
