// The results of an object's CO-RE relocations on a kernel, without that kernel: `rawbpf relocs` and `rawbpf check`. PURE
// except for the modules, whose types it asks for.
#pragma once

#include <string>
#include <vector>

#include "runtime/object/core.h"

namespace rawbpf::inline v0::inspect {

/// One relocation on one kernel.
struct CoreResultLine {
    CoreOutcome outcome;
    bool reachable = true; ///< a verifier would get to the instruction
};

struct CoreView {
    std::string target; ///< the kernel's name: "vmlinux", a path
    std::vector<CoreResultLine> lines;
    size_t resolved = 0;
    size_t guarded = 0;    ///< poisoned, and no path leads there
    size_t unresolved = 0; ///< poisoned, and reachable: a verifier that gets there refuses the program
};

/// Relocates a copy of all programs, those of "?" sections too. Errors: as relocate_core().
[[nodiscard]] Result<CoreView> view_core(const ObjectSpec &spec, const CoreTargets &targets, std::string target);

/// "PROGRAM: INSN  KIND  WHAT  BEFORE -> AFTER", poisoned ones with the reason, below it the candidates that were rejected.
void append_relocs_text(std::string &out, const CoreView &view);
void append_relocs_json(std::string &out, const CoreView &view, std::string_view object);

/// One line a kernel, and below it one for each relocation that can't be resolved there; guarded ones only when `all`.
void append_check_text(std::string &out, const CoreView &view, bool all);
/// {"type":"relocation",...} for what can't be resolved, then {"type":"check",...}.
void append_check_json(std::string &out, const CoreView &view, std::string_view object);

} // namespace rawbpf::inline v0::inspect
