#include "programs/session/kernel_names.h"

#include <algorithm>
#include <vector>

#include "runtime/base/stable_sort.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::session {
namespace {

constexpr uint64_t kPassShare = 20;
constexpr uint64_t kLongestWaitNs = 2'000'000'000;

} // namespace

bool PassBudget::affordable(uint64_t now_ns) const { return !any_ || now_ns >= ended_ns_ + kPassShare * cost_ns_; }

bool PassBudget::due(uint64_t now_ns, uint64_t oldest_ns) const {
    return affordable(now_ns) || now_ns > oldest_ns + kLongestWaitNs;
}

void PassBudget::passed(uint64_t began_ns, uint64_t ended_ns) {
    any_ = true;
    cost_ns_ = ended_ns - began_ns;
    ended_ns_ = ended_ns;
}

bool KernelNames::known(uint32_t node) const {
    bool all = true;
    tree_.walk(node, [&](uint32_t place) { all = all && namer_.named(place); });
    return all;
}

bool KernelNames::ready(std::span<const uint32_t> nodes, uint64_t now_ns, uint64_t oldest_ns) const {
    return budget_.due(now_ns, oldest_ns) || std::all_of(nodes.begin(), nodes.end(), [&](uint32_t node) { return known(node); });
}

void KernelNames::name(std::span<const uint32_t> nodes) {
    std::vector<uint32_t> places;
    for (const uint32_t node : nodes)
        tree_.walk(node, [&](uint32_t place) {
            if (!namer_.named(place)) places.push_back(place);
        });
    if (places.empty()) return;
    stable_sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const uint64_t began = sys::monotonic_ns();
    namer_.name_kernel(places);
    budget_.passed(began, sys::monotonic_ns());
}

} // namespace rawbpf::inline v0::session
