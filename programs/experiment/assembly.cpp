// The assembler's complaints, with the lines of the experiment that they are about.
#include "programs/experiment/assembly.h"

#include "asm/assemble.h"

namespace rawbpf::inline v0::experiment {

Unit assemble_text(const Experiment &e, Mistakes &mistakes) {
    if (e.assembly.empty()) return {};
    AssembleOptions options;
    options.name = e.name;
    Assembled out = assemble(e.assembly, options);
    for (Complaint &complaint : out.complaints) {
        const auto line = static_cast<size_t>(complaint.at.line);
        if (line != 0 && line <= e.lines.size()) complaint.line = e.lines[line - 1];
        mistakes.add(std::move(complaint));
    }
    out.unit.license = e.license;
    return std::move(out.unit);
}

} // namespace rawbpf::inline v0::experiment
