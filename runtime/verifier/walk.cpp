// Finds paths in the walk, and marks the values that matter. See walk.h and prune.cpp.
#include "runtime/verifier/walk.h"

#include <algorithm>

namespace rawbpf::inline v0::verifier {

std::vector<uint32_t> Walk::path_to(uint32_t step) const {
    std::vector<uint32_t> out;
    for (; step != 0 && step < steps.size(); step = steps[step].parent) out.push_back(step);
    std::reverse(out.begin(), out.end());
    return out;
}

void Walk::need(uint32_t node) {
    std::vector<uint32_t> todo = {node};
    while (!todo.empty()) {
        Node &at = nodes[todo.back()];
        todo.pop_back();
        if (at.precise) continue;
        at.precise = true;
        if (at.a) todo.push_back(at.a);
        if (at.b) todo.push_back(at.b);
    }
}

} // namespace rawbpf::inline v0::verifier
