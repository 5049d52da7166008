// A stable sort whose main function is compiled once.
//
// std::sort is instantiated for every element type and every comparison, 1.1 KB of introsort, heap sort and insertion sort
// each time: forty instances were 50 KB. Here only the comparison and the exchange of two elements are instantiated; the sort
// itself, which knows the elements only by their numbers, is one function in stable_sort.cpp. It costs a call through a pointer
// for each comparison, which only the symbol tables would notice (hundreds of thousands of addresses: they use std::sort).
// (libstdc++'s std::stable_sort also calls a function that C++17 deprecated, and clang warns at every use.)
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace rawbpf::inline v0 {

namespace detail {
/// A list of elements that are known by their numbers.
struct Sortable {
    const void *list;
    bool (*precedes)(const void *list, size_t a, size_t b); ///< whether element `a` must stand before element `b`
    void (*exchange)(const void *list, size_t a, size_t b);
};
void stable_sort(size_t count, const Sortable &elements);
} // namespace detail

/// Sorts a vector or a deque by `before`; equal elements keep their order. What is in order already costs one pass and no memory.
template <class List, class Before = std::less<>> void stable_sort(List &list, Before before = {}) {
    struct Both {
        List &list;
        const Before &before;
    };
    const Both both{list, before};
    detail::stable_sort(list.size(), {&both,
                                      [](const void *context, size_t a, size_t b) -> bool {
                                          const Both &its = *static_cast<const Both *>(context);
                                          return its.before(its.list[a], its.list[b]);
                                      },
                                      [](const void *context, size_t a, size_t b) {
                                          const Both &its = *static_cast<const Both *>(context);
                                          std::swap(its.list[a], its.list[b]);
                                      }});
}

} // namespace rawbpf::inline v0
