// An experiment's assembly text.
#pragma once

#include "asm/unit.h"
#include "programs/experiment/experiment.h"

namespace rawbpf::inline v0::experiment {

/// Its programs and maps; what is wrong with the text becomes mistakes. Empty: the experiment has no assembly.
[[nodiscard]] Unit assemble_text(const Experiment &experiment, Mistakes &mistakes);

} // namespace rawbpf::inline v0::experiment
