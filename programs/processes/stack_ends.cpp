// The endings of runtime/unwind/layout.h, in its order, in words that don't change: JSON has them as keys.
#include "programs/processes/stack_ends.h"

#include <algorithm>

namespace rawbpf::inline v0::processes {
namespace {

constexpr std::string_view kEndings[UNWIND_ENDINGS] = {
    "root",       "no_process", "no_mapping", "no_table",     "no_rule",         "odd_rule",
    "unreadable", "stuck",      "depth",      "no_registers", "callers_in_heap",
};

} // namespace

std::string_view ending_name(uint8_t ending) { return ending < UNWIND_ENDINGS ? kEndings[ending] : "unknown"; }

std::vector<std::pair<std::string, uint64_t>> StackEnds::list() const {
    std::vector<std::pair<std::string, uint64_t>> out;
    if (std::all_of(counts_.begin(), counts_.end(), [](uint64_t count) { return count == 0; })) return out;
    for (size_t i = 0; i < counts_.size(); ++i) out.emplace_back(kEndings[i], counts_[i]);
    return out;
}

} // namespace rawbpf::inline v0::processes
