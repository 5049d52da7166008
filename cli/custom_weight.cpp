#include "cli/custom_weight.h"

#include "cli/running.h"

#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {

custom::ViewOptions::Weight weight_of(const Arguments &a, Id weight) {
    using Weight = custom::ViewOptions::Weight;
    const std::string_view name = a.text(weight);
    return name == "context" ? Weight::context : name == "off-cpu" ? Weight::off_cpu : Weight::count;
}

Result<void> check_weight(const Arguments &a, Id id, std::string_view shape, bool samples, bool off_cpu) {
    if (a.has(id) && !custom::is_weighed(custom::rendered(shape)))
        return wrong_usage(format("--weight is for -f folded, svg and top, not {}", shape));
    const std::string_view weight = a.text(id);
    if (weight != "count" && samples)
        return wrong_usage(format("--weight {}: samples have no context and no time", weight),
                           "run rawbpf custom without --freq");
    if (weight == "context" && off_cpu)
        return wrong_usage("--weight context: waits have no context", "run rawbpf custom without --off-cpu, or weigh by off-cpu");
    if (weight == "off-cpu" && !off_cpu) return wrong_usage("--weight off-cpu needs --off-cpu");
    return {};
}

} // namespace rawbpf::inline v0::cli
