// `rawbpf run --kernel`: an experiment on other kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/object_file.h"
#include "cli/options.h"
#include "programs/experiment/experiment.h"

namespace rawbpf::inline v0::cli {

/// What `run` was told, for its guests.
struct GuestExperiment {
    std::vector<std::string> kernels;
    bool instructions = false;        ///< the guest's clock counts instructions
    bool series = false;              ///< figures side by side
    std::vector<std::string> options; ///< of rawbpf run in the guest, but for the format
    std::vector<std::string> command; ///< behind --
    std::string form;                 ///< "text", "json", "csv"
};

/// Boots each kernel in turn, carries the experiment out there, and writes the results: of series one table over all kernels.
/// `path`: of its file, from the root. Returns the exit status; errors are said.
[[nodiscard]] int run_experiment_in_guests(const experiment::Experiment &experiment, const std::string &path,
                                           const GuestExperiment &how, Output &output);

} // namespace rawbpf::inline v0::cli
