// Where an experiment runs: in the kernel, in the emulator, or as it was recorded. It is a separate file, so that a program that
// only emulates (run_in()) doesn't link the rest.
#include "programs/experiment/lab.h"
#include "programs/experiment/run.h"

namespace rawbpf::inline v0::experiment {

std::unique_ptr<Lab> lab_as_set(const Experiment &experiment, Plan &plan, const RunSettings &settings) {
    return settings.replay    ? replayed_lab(experiment, plan, *settings.replay)
           : settings.emulate ? emulated_lab(experiment, plan)
                              : kernel_lab(experiment, plan);
}

Result<RunOutcome> run(const Experiment &experiment, Plan plan, const RunSettings &settings, const sys::SignalFd &signals,
                       Sink &sink) {
    return run_in(lab_as_set, experiment, std::move(plan), settings, signals, sink);
}

} // namespace rawbpf::inline v0::experiment
