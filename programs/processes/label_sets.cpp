#include "programs/processes/label_sets.h"

#include <functional>
#include <string_view>
#include <utility>

namespace rawbpf::inline v0::processes {
namespace {

uint64_t hash_of(const Labels &set) {
    uint64_t hash = set.size();
    for (const auto &[key, value] : set)
        hash = mix(hash ^ std::hash<std::string_view>()(key)) + std::hash<std::string_view>()(value);
    return mix(hash);
}

} // namespace

uint32_t LabelSets::intern(Labels set) {
    if (set.empty()) return kEmpty;
    const uint64_t hash = hash_of(set);
    uint32_t id = index_.find(hash, [&](uint32_t other) { return *sets_[other] == set; });
    if (id != IdIndex::kNone) return id;
    id = static_cast<uint32_t>(sets_.size());
    index_.add(hash, id, [&](uint32_t other) { return hash_of(*sets_[other]); });
    sets_.push_back(std::make_shared<const Labels>(std::move(set)));
    return id;
}

void LabelSets::clear() {
    sets_.assign(1, nullptr);
    index_.clear();
}

} // namespace rawbpf::inline v0::processes
