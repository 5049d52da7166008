// Merge sort over the elements' numbers: it sorts two halves, copies the left one aside, and merges both into its place.
//
//      order   | left half, sorted | right half, sorted |
//      aside   | left half         |                        whichever comes first is written to order, from the left; what is
//                                                           written never passes the right half's next element
//
// Halves that are in order already aren't merged, so a sorted list costs count - 1 comparisons. At the end the elements go where
// the numbers say: what stands in place of the first is exchanged with what belongs there, until the first turns up itself; and
// so on with the next element that isn't in its place.
#include "runtime/base/stable_sort.h"

#include <utility>
#include <vector>

namespace rawbpf::inline v0 {
namespace {

struct Sorting {
    const detail::Sortable &elements;
    size_t *aside; // room for half of the elements

    void sort(size_t *order, size_t count) const {
        if (count < 2) return;
        const size_t half = count / 2;
        sort(order, half);
        sort(order + half, count - half);
        merge(order, half, count);
    }

  private:
    bool precedes(size_t a, size_t b) const { return elements.precedes(elements.list, a, b); }

    void merge(size_t *order, size_t half, size_t count) const {
        if (!precedes(order[half], order[half - 1])) return;
        for (size_t i = 0; i < half; ++i) aside[i] = order[i];
        size_t left = 0, right = half, to = 0;
        while (left < half) order[to++] = right < count && precedes(order[right], aside[left]) ? order[right++] : aside[left++];
    }
};

// Element order[i] to position i, for each i.
void arrange(const detail::Sortable &elements, std::vector<size_t> &order) {
    for (size_t first = 0; first < order.size(); ++first) {
        size_t at = first;
        while (order[at] != first) {
            const size_t next = std::exchange(order[at], at);
            elements.exchange(elements.list, at, next);
            at = next;
        }
        order[at] = at;
    }
}

} // namespace

void detail::stable_sort(size_t count, const Sortable &elements) {
    size_t in_order = 1;
    while (in_order < count && !elements.precedes(elements.list, in_order, in_order - 1)) ++in_order;
    if (in_order >= count) return;
    std::vector<size_t> order(count), aside(count / 2);
    for (size_t i = 0; i < count; ++i) order[i] = i;
    Sorting{elements, aside.data()}.sort(order.data(), count);
    arrange(elements, order);
}

} // namespace rawbpf::inline v0
