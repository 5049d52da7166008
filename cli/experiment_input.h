// Experiments from files: what `run`, `verify` and `explain` share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/object_file.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/plan.h"

namespace rawbpf::inline v0::cli {

/// Where experiments are that have no path: installed, and those of the source tree that this was built in.
[[nodiscard]] std::vector<std::string> experiment_folders();
/// A path, "-", or the bare name of an experiment that comes with rawbpf. Errors: not_found.
[[nodiscard]] Result<InputFile> open_experiment(std::string_view name);

/// Says them on standard error. Errors: bad_input with their number, where there are any.
[[nodiscard]] Result<void> say_mistakes(const experiment::Mistakes &mistakes, std::string_view name);

/// An experiment, and all that it would load.
struct PreparedExperiment {
    experiment::Experiment experiment;
    experiment::Plan plan;
};
/// Parses it, compiles its probes and programs. Mistakes are said on standard error. Errors: bad_input with their number; a file
/// that it names and that can't be read.
[[nodiscard]] Result<PreparedExperiment> prepare_experiment(const InputFile &file,
                                                            const std::vector<experiment::Setting> &settings = {});

} // namespace rawbpf::inline v0::cli
