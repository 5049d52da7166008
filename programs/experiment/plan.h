// An experiment -> objects to load, and how what they collect is shown. Reads the files that it names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "programs/experiment/compile.h"
#include "programs/experiment/evaluate.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::experiment {

struct Plan {
    std::vector<ObjectSpec> specs; ///< the assembly's and the probes' first, where there are any; then the files'
    struct MapPlace {
        MapView view;
        size_t spec = 0;
    };
    std::vector<MapPlace> maps; ///< those that are shown; not those of variables
    struct EventPlace {
        EventView view;
        size_t spec = 0;
    };
    std::vector<EventPlace> events;
    std::vector<Placed> places;
    std::vector<std::string> notes;
    std::vector<std::string> variables;

    [[nodiscard]] const MapPlace *find_map(std::string_view name) const;
    [[nodiscard]] const ProgramSpec *find_program(std::string_view name) const;
};

/// `folder`: what paths of objects count from, with a slash at its end, or empty. What is wrong with the text goes to `mistakes`,
/// names and keys of steps and formats included. Errors: a file that can't be read; types that can't be.
[[nodiscard]] Result<Plan> make_plan(const Experiment &experiment, std::string_view folder, const Surroundings &surroundings,
                                     Mistakes &mistakes);
/// Whether the experiment's steps and formats go with a plan that wasn't made of it: a recorded one. What doesn't goes to
/// `mistakes`.
void check_steps(const Experiment &experiment, const Plan &plan, Mistakes &mistakes);

} // namespace rawbpf::inline v0::experiment
