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
    Diagnostic at;
    std::string line; ///< the source line
    std::string hint; ///< what was probably meant; may be empty
};

struct AssembleOptions {
    std::string_view name = "asm"; ///< of the file, for complaints and line information
    bool lines = true;             ///< Function::lines is filled
    /// For `.include`: reads the file into `text`. nullptr: includes are refused. The path is as it is written.
    bool (*include)(void *context, std::string_view path, std::string &text) = nullptr;
    /// Whether a loader knows what such a section's programs are; what it doesn't know is warned of, with the hint. nullptr: all
    /// are taken.
    bool (*section)(std::string_view section, std::string &hint) = nullptr;
    void *context = nullptr; ///< include()'s
};

/// A label of the source: what a listing or a debugger calls a place.
struct LabelPlace {
    std::string function, name;
    uint32_t insn = 0; ///< of the function; its size: the end
};

struct Assembled {
    Unit unit; ///< sound when there are no complaints
    std::vector<LabelPlace> labels;
    std::vector<Complaint> complaints;
    /// What can be written down and certainly isn't meant: a jump out of its function, an end without an exit, a place outside of
    /// the stack, a section that no loader knows, a constant that looks like an assignment.
    std::vector<Complaint> warnings;
    [[nodiscard]] explicit operator bool() const { return complaints.empty(); }
    /// All complaints as people read them:
    ///     prog.asm:3:1: r10 is the frame pointer and can't be written
    ///         3 | r10 = 5
    ///           | ^
    [[nodiscard, gnu::cold]] std::string report() const;
    /// The warnings in the same form: "prog.asm:3:1: warning: ..."
    [[nodiscard, gnu::cold]] std::string warning_report() const;
};

/// Instructions without a `.program` become one program of section "socket" (a socket filter) with the name "main". Reports up to
/// 20 mistakes. Works in time proportional to the text; a unit may have 1,000,000 instructions.
[[nodiscard]] Assembled assemble(std::string_view text, const AssembleOptions &options = {});

/// The functions of a unit one behind the other, in the unit's order, calls aimed: what `exec -` takes. False, with a sentence in
/// `why`, when something has to be loaded first (maps, kernel functions, fields of kernel structs).
[[nodiscard]] bool flatten(const Unit &unit, std::vector<Insn> &insns, std::string &why);

} // namespace rawbpf::inline v0
