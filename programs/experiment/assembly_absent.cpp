// In the place of assembly.cpp, in a build without the part `asm`.
#include "programs/experiment/assembly.h"
#include "programs/without_part.h"

namespace rawbpf::inline v0::experiment {

Unit assemble_text(const Experiment &experiment, Mistakes &mistakes) {
    if (experiment.assembly.empty()) return {};
    mistakes.add({}, {}, without_part("assembly", "asm").message());
    mistakes.last_is(Errc::unsupported);
    return {};
}

} // namespace rawbpf::inline v0::experiment
