// A stable sort whose main function is compiled once.
//
// std::sort is instantiated for every element type and every comparison, 1.1 KB of introsort, heap sort and insertion sort
// each time: forty instances were 50 KB. Here only the comparison and the moving are instantiated; the sort itself, which
// knows the elements only by their numbers, is one function in stable_sort.cpp. It costs a call through a pointer for each
// comparison, which only the symbol tables would notice (hundreds of thousands of addresses: they use std::sort). (libstdc++'s
// std::stable_sort also calls a function that C++17 deprecated, and clang warns at every use.)
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace rawbpf::inline v0 {

namespace detail {
/// Whether element `a` must stand before element `b` of the list behind `context`.
using Precedes = bool (*)(const void *context, size_t a, size_t b);
/// The numbers of `count` elements in their sorted order, equal ones as they stood; empty where they are in order already.
[[nodiscard]] std::vector<size_t> sorted_order(size_t count, Precedes precedes, const void *context);
} // namespace detail

/// Sorts a vector or a deque by `before`; equal elements keep their order. What is in order already costs one pass and no memory.
template <class List, class Before = std::less<>> void stable_sort(List &list, Before before = {}) {
    const auto both = std::pair<const List *, const Before *>(&list, &before);
    const std::vector<size_t> order = detail::sorted_order(
        list.size(),
        [](const void *context, size_t a, size_t b) -> bool {
            const auto &[elements, before] = *static_cast<const std::pair<const List *, const Before *> *>(context);
            return (*before)((*elements)[a], (*elements)[b]);
        },
        &both);
    if (order.empty()) return;
    List sorted;
    if constexpr (requires { sorted.reserve(list.size()); }) sorted.reserve(list.size());
    for (size_t i : order) sorted.push_back(std::move(list[i]));
    list = std::move(sorted);
}

} // namespace rawbpf::inline v0
