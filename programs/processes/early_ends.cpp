#include "programs/processes/early_ends.h"

#include <algorithm>
#include <string_view>

#include "programs/processes/stack_ends.h"
#include "runtime/base/format.h"
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::processes {

void EarlyEnds::add(Namer &namer, const StackTree &tree, uint32_t node, uint8_t ending, uint64_t count) {
    places_.clear();
    tree.walk(node, [&](uint32_t place) { places_.push_back(place); });
    add(namer, tree, places_, ending, count);
}

void EarlyEnds::add(Namer &namer, const StackTree &tree, std::span<const uint32_t> places, uint8_t ending, uint64_t count) {
    if (places.empty()) return;
    uint32_t known = kNone; // the outermost place in a module, of the native stack
    modules_.clear();
    for (const uint32_t place : places) {
        const uint32_t module = tree.places()[place].module;
        if (module == kNone) continue;
        if (!namer.interpreted(place)) known = place;
        if (std::find(modules_.begin(), modules_.end(), module) == modules_.end()) modules_.push_back(module);
    }
    for (const uint32_t module : modules_) of_module(module).stacks += count;
    if (ending == UNWIND_ENDED_ROOT) return;
    for (const uint32_t place : places.last(std::min<size_t>(places.size(), 2))) {
        (void)namer.frame(place);
        if (namer.begins(place)) return;
    }
    count_ += count;
    const uint32_t module = known == kNone ? kNone : tree.places()[known].module;
    if (known != kNone) {
        ModuleEnds &ends = of_module(module);
        (ending < UNWIND_ENDINGS ? ends.early[ending] : ends.by_frame_pointers) += count;
    }
    Where &where = where_[uint64_t{module} << 8 | ending];
    where.count += count;
    if (!where.name.empty()) return;
    where.name = known == kNone ? "[unknown]" : namer.frame(known)->module;
    if (by_tables(ending)) {
        std::string reason(ending_name(ending));
        std::replace(reason.begin(), reason.end(), '_', ' ');
        append(where.name, " ({})", reason);
    }
}

ModuleEnds &EarlyEnds::of_module(uint32_t module) {
    if (by_module_.size() <= module) by_module_.resize(module + 1);
    return by_module_[module];
}

std::vector<std::pair<std::string, uint64_t>> EarlyEnds::list() const {
    std::unordered_map<std::string_view, uint64_t> sums; // files of one name, and endings that have no reason
    for (const auto &[key, where] : where_) sums[where.name] += where.count;
    std::vector<std::pair<std::string, uint64_t>> out(sums.begin(), sums.end());
    stable_sort(out,
                [](const auto &a, const auto &b) { return a.second > b.second || (a.second == b.second && a.first < b.first); });
    return out;
}

std::vector<render::StackAdvice> EarlyEnds::advice(const ModuleTable &table, const Remedy &remedy) const {
    std::vector<ModuleEnds> modules = by_module_;
    std::vector<std::string_view> mapped;
    for (uint32_t i = 0; i < table.all().size(); ++i) {
        mapped.push_back(table[i].path);
        if (i >= modules.size()) continue;
        modules[i].path = table[i].path;
        modules[i].anonymous = table[i].kind == ModuleKind::anonymous;
    }
    return advice_on(modules, mapped, remedy);
}

} // namespace rawbpf::inline v0::processes
