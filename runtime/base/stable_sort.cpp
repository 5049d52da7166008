// Merge sort over the elements' numbers: it sorts two halves, copies the left one aside, and merges both into its place.
//
//      order   | left half, sorted | right half, sorted |
//      aside   | left half         |                        whichever comes first is written to order, from the left; what is
//                                                           written never passes the right half's next element
//
// Halves that are in order already aren't merged, so a sorted list costs count - 1 comparisons.
#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0 {
namespace {

struct Sorting {
    detail::Precedes precedes;
    const void *context;
    size_t *aside; // room for half of the elements

    void sort(size_t *order, size_t count) const {
        if (count < 2) return;
        const size_t half = count / 2;
        sort(order, half);
        sort(order + half, count - half);
        merge(order, half, count);
    }

  private:
    void merge(size_t *order, size_t half, size_t count) const {
        if (!precedes(context, order[half], order[half - 1])) return;
        for (size_t i = 0; i < half; ++i) aside[i] = order[i];
        size_t left = 0, right = half, to = 0;
        while (left < half)
            order[to++] = right < count && precedes(context, order[right], aside[left]) ? order[right++] : aside[left++];
    }
};

} // namespace

std::vector<size_t> detail::sorted_order(size_t count, Precedes precedes, const void *context) {
    size_t in_order = 1;
    while (in_order < count && !precedes(context, in_order, in_order - 1)) ++in_order;
    if (in_order >= count) return {};
    std::vector<size_t> order(count), aside(count / 2);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    Sorting{precedes, context, aside.data()}.sort(order.data(), count);
    return order;
}

} // namespace rawbpf::inline v0
