// --weight: what a stack of custom traces weighs, live and in a report.
#pragma once

#include <string_view>

#include "cli/options.h"
#include "programs/custom/view.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

constexpr Option weight_option(std::string_view help) {
    return {.name = "weight",
            .kind = OptionKind::choice,
            .argument = "WHAT",
            .help = help,
            .fallback = "count",
            .choices = "count context off-cpu"};
}

[[nodiscard]] custom::ViewOptions::Weight weight_of(const Arguments &a, Id weight);
/// Whether that format weighs, and traces have such a weight: `samples` and `off_cpu` are among them.
[[nodiscard]] Result<void> check_weight(const Arguments &a, Id weight, std::string_view format, bool samples, bool off_cpu);

} // namespace rawbpf::inline v0::cli
