// `--by`, `--sum`, `--hist` ... of `rawbpf trace` and `rawbpf usdt trace`: what the command line asks for, and when it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/options.h"
#include "programs/session/run_info.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/group_stacks.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::cli::tracing {

/// Whether events are put into groups.
[[nodiscard]] bool wants_groups(const Arguments &a);
/// Errors: invalid_argument for options that don't go together.
[[nodiscard]] Result<void> check_groups(const Arguments &a);
/// Whether --by has `stack` among its keys.
[[nodiscard]] bool groups_by_stack(const Arguments &a);
/// With wants_groups(). Errors: invalid_argument, with a caret.
[[nodiscard]] Result<trace::AggregateOptions> group_options(const Arguments &a);

/// A run's groups: read now and then, and shown.
class GroupRun {
  public:
    /// `live`: the table is drawn on a terminal, over the last one.
    /// `stacks`: what the groups' stacks are, where they are told apart by them; else nullptr.
    GroupRun(const Arguments &a, const trace::Tracer &tracer, const RunInfo &run, const std::vector<std::string> &functions,
             trace::GroupStacks *stacks, const btf::Btf *kernel, Output &output, uint64_t start_ns, bool live);

    /// Programs run from here on.
    void begin(uint64_t now_ns) { due_ns_ = now_ns + every_ns_; }
    /// To be called often: shows what is due.
    [[nodiscard]] Result<void> tick(uint64_t now_ns);
    /// All of it, or with --every the last interval. The tracer has finished.
    [[nodiscard]] Result<void> finish(uint64_t now_ns);

  private:
    [[nodiscard]] Result<void> show(uint64_t now_ns, bool last);

    const trace::Tracer &tracer_;
    const RunInfo &run_;
    const std::vector<std::string> &functions_;
    trace::GroupStacks *stacks_;
    const btf::Btf *kernel_;
    Output &output_;
    trace::GroupFormat format_ = trace::GroupFormat::text;
    bool count_, live_, by_interval_;
    size_t top_;
    uint64_t start_ns_, every_ns_, due_ns_, intervals_ = 0;
    uint32_t drawn_ = 0; ///< lines that stand on the terminal
    bool first_ = true;
    std::vector<trace::GroupRow> before_;
};

} // namespace rawbpf::inline v0::cli::tracing
