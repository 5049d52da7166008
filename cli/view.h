// From named samples to what the user asked to see: the sink that `profile` and `report` share.
#pragma once

#include <memory>
#include <string>

#include "cli/common_options.h"
#include "cli/console.h"
#include "programs/profile/profiler.h"
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::cli {

/// What a command line says about showing samples.
struct ViewOptions {
    render::Format format = render::Format::table;
    render::RenderOptions render = {};
    std::string output = {}; ///< -o
};

[[nodiscard]] ViewOptions view_options(const Arguments &arguments, const ViewIds &ids);

/// Renders into -o FILE or standard output, with a line of progress on a terminal.
class View final : public Sink {
  public:
    /// Opens the output. Errors: the path can't be written; the format isn't in this build (unsupported).
    [[nodiscard]] static Result<std::unique_ptr<View>> open(const ViewOptions &options);

    /// What the tool should hand over for this format.
    [[nodiscard]] Delivery delivery() const { return render::aggregates(options_.format) ? Delivery::counted : Delivery::each; }
    [[nodiscard]] bool streams() const { return render::streams(options_.format); }
    /// Whether frames are wanted at all: the table without --ps shows only sizes.
    [[nodiscard]] bool wants_names() const { return options_.format != render::Format::table || options_.render.stacks; }

    Result<void> start(const RunInfo &run) override;
    Result<void> samples(std::span<const NamedSample> samples) override;
    Result<void> stacks(std::span<const CountedSample> stacks) override;
    /// Writes what only the end knows (folded, svg, the json ledger).
    [[nodiscard]] Result<void> finish(const Outcome &outcome);

  private:
    View(const ViewOptions &options, Output output) : options_(options), output_(std::move(output)) {}
    ViewOptions options_;
    Output output_;
    std::unique_ptr<render::Renderer> renderer_;
};

/// One line on standard error, rewritten in place; cleared when dropped. Does nothing when not `wanted`.
class ProgressLine {
  public:
    ProgressLine(bool wanted, std::string_view note) : wanted_(wanted), note_(note) {}
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine &) = delete;
    ProgressLine &operator=(const ProgressLine &) = delete;
    void show(const Progress &progress);
    void clear();

  private:
    bool wanted_, shown_ = false;
    std::string_view note_;
    double next_ = 0;
};

/// What would make stacks whole, a warning each.
void append_advice(std::string &text, std::string_view who, const std::vector<render::StackAdvice> &advice);
/// The ledger, the warnings and the workload's status on standard error, as -q and -v ask.
void say_outcome(std::string_view who, const Outcome &outcome, const std::string &workload, bool quiet, bool verbose);

} // namespace rawbpf::inline v0::cli
