// Carries an experiment out: loads, attaches, does its steps, lets go.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/plan.h"
#include "programs/experiment/tape.h"
#include "runtime/base/result.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::experiment {

/// Where a run writes to.
struct Sink {
    virtual ~Sink() = default;
    virtual Result<void> out(std::string_view text) = 0; ///< results; errors: the reader has gone
    virtual void remark(std::string_view text) = 0;      ///< a sentence for people
};

enum class OutputForm : uint8_t { text, json, csv };

struct RunSettings {
    OutputForm form = OutputForm::text;
    double duration_s = 0;            ///< of waits without a time; 0: until Ctrl-C
    std::vector<std::string> command; ///< started before the first step; waits without a time end with it
    std::optional<sys::User> user;    ///< who workloads run as
    bool verbose = false;             ///< what is attached, and what was passed over
    bool emulate = false;             ///< in user space, without a kernel and privileges
    Tape *record = nullptr;           ///< gets what came, and the plan; its name, text and settings are the caller's
    const Tape *replay = nullptr;     ///< in place of the kernel: what this says
    bool quiet = false;               ///< no results, only measures: of a series (losses are told)
};

/// An expectation that didn't hold.
struct Failure {
    TextPlace at;                                      ///< of the step
    std::string source;                                ///< the line, as it stands there
    std::string found;                                 ///< why, in words, where no values tell it
    std::vector<std::pair<std::string, Number>> parts; ///< the values in it: "counts[0]", 998
};

/// Numbers of a recording that say what signals did to the run: a wait was cut short; one came; a second one left out the rest.
inline constexpr const char *kInterrupted = "run.interrupted", *kStopped = "run.stopped", *kLeft = "run.left";

struct RunOutcome {
    size_t expectations = 0, failed = 0, skipped = 0;
    bool interrupted = false;
    bool stopped = false; ///< a signal came
    std::vector<std::pair<std::string, Number>> measures;
    std::vector<Failure> failures;
};

class Lab;
/// Makes what an experiment works on (lab.h). The plan outlives it.
using MakeLab = std::unique_ptr<Lab> (*)(const Experiment &experiment, Plan &plan, const RunSettings &settings);
/// The kernel, the emulator or a recording, as the settings say.
[[nodiscard]] std::unique_ptr<Lab> lab_as_set(const Experiment &experiment, Plan &plan, const RunSettings &settings);

/// run() in a lab of the caller's choice: a program without a kernel doesn't link the code that calls it. `signals` may be closed
/// (-1).
[[nodiscard]] Result<RunOutcome> run_in(MakeLab make, const Experiment &experiment, Plan plan, const RunSettings &settings,
                                        const sys::SignalFd &signals, Sink &sink);

/// Signals on `signals` end what is waited for. Expectations that don't hold are shown and counted. Errors: the kernel refuses a
/// program that isn't expected to be rejected, a probe can't be attached, a command can't be started, a map can't be read.
[[nodiscard]] Result<RunOutcome> run(const Experiment &experiment, Plan plan, const RunSettings &settings,
                                     const sys::SignalFd &signals, Sink &sink);

} // namespace rawbpf::inline v0::experiment
