// Two lists in the same order are compared as a merge: one pass, no table of either.
//
//      before   a b   d        a = a   nothing       c only after    new
//      after    a b'  c        b < b'  changed       d only before   gone
#include "programs/running/changes.h"

#include <algorithm>
#include <cstring>

namespace rawbpf::inline v0::running {
namespace {

/// Keys that are one number are compared as such, others byte by byte.
int compare_keys(Bytes a, Bytes b) {
    const auto three_way = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
    switch (a.size()) {
    case 2: return three_way(load<uint16_t>(a.data()), load<uint16_t>(b.data()));
    case 4: return three_way(load<uint32_t>(a.data()), load<uint32_t>(b.data()));
    case 8: return three_way(load<uint64_t>(a.data()), load<uint64_t>(b.data()));
    default: return std::memcmp(a.data(), b.data(), a.size());
    }
}

} // namespace

void MapImage::add(const Map::Entries &some) {
    keys_.insert(keys_.end(), some.keys.begin(), some.keys.end());
    values_.insert(values_.end(), some.values.begin(), some.values.end());
    for (size_t i = 0; i < some.count; ++i) order_.push_back(static_cast<uint32_t>(order_.size()));
}

void MapImage::sort() {
    // stable: what was added first stays in front of its repeats
    const auto at = [&](uint32_t i) { return Bytes(keys_).subspan(i * key_size_, key_size_); };
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return compare_keys(at(a), at(b)) < 0; });
    const auto end =
        std::unique(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return compare_keys(at(a), at(b)) == 0; });
    order_.erase(end, order_.end());
}

void each_change(const MapImage &before, const MapImage &after, const std::function<void(const MapChange &)> &see) {
    size_t b = 0, a = 0;
    while (b < before.size() || a < after.size()) {
        const int order = b == before.size() ? 1 : a == after.size() ? -1 : compare_keys(before.key(b), after.key(a));
        if (order < 0) {
            see({before.key(b), before.value(b), {}});
            ++b;
        } else if (order > 0) {
            see({after.key(a), {}, after.value(a)});
            ++a;
        } else {
            const Bytes old = before.value(b), now = after.value(a);
            if (!std::equal(old.begin(), old.end(), now.begin(), now.end())) see({after.key(a), old, now});
            ++b;
            ++a;
        }
    }
}

} // namespace rawbpf::inline v0::running
