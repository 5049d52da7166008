// `--by`, `--sum`, `--hist` ... of `rawbpf trace` and `rawbpf usdt trace`: what the command line asks for.
#pragma once

#include "cli/options.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/group_run.h"

namespace rawbpf::inline v0::cli::tracing {

/// Whether events are put into groups.
[[nodiscard]] bool wants_groups(const Arguments &a);
/// Errors: invalid_argument for options that don't go together.
[[nodiscard]] Result<void> check_groups(const Arguments &a);
/// Whether --by has `stack` among its keys.
[[nodiscard]] bool groups_by_stack(const Arguments &a);
/// With wants_groups(). Errors: invalid_argument, with a caret.
[[nodiscard]] Result<trace::AggregateOptions> group_options(const Arguments &a);
/// How they are shown: all but on which terminal.
[[nodiscard]] trace::GroupsShown groups_shown(const Arguments &a);

} // namespace rawbpf::inline v0::cli::tracing
