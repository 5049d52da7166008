// In the place of emulated_lab.cpp, in a build without the part `exec`, which has no --emulate.
#include "programs/experiment/lab.h"

namespace rawbpf::inline v0::experiment {

std::unique_ptr<Lab> emulated_lab(const Experiment &, Plan &) { return nullptr; }

} // namespace rawbpf::inline v0::experiment
