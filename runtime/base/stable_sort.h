// A stable sort without std::stable_sort: libstdc++'s asks for a temporary buffer by a function that C++17 deprecated, and clang
// says so at every use. Equal elements keep their order because their old places decide.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rawbpf::inline v0 {

/// Sorts by `before`; does nothing to what is sorted already, which is the usual case here.
template <class T, class Before> void stable_sort(std::vector<T> &list, Before before) {
    if (std::is_sorted(list.begin(), list.end(), before)) return;
    std::vector<size_t> order(list.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        if (before(list[a], list[b])) return true;
        return !before(list[b], list[a]) && a < b;
    });
    std::vector<T> sorted;
    sorted.reserve(list.size());
    for (size_t i : order) sorted.push_back(std::move(list[i]));
    list = std::move(sorted);
}

} // namespace rawbpf::inline v0
