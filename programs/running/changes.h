// What a map holds at one moment, and what has changed at a later one. PURE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::running {

/// A copy of all entries. 4 bytes an entry more than what they have.
class MapImage {
  public:
    /// `value_size`: of a lookup. Sizes in bytes; a key has at least one.
    MapImage(size_t key_size, size_t value_size) : key_size_(key_size), value_size_(value_size) {}

    /// Entries in any order; a key that is there already keeps what was added first.
    void add(const Map::Entries &some);
    /// After the last add(): puts the keys in order.
    void sort();
    [[nodiscard]] size_t size() const { return order_.size(); }
    /// Bytes that it holds.
    [[nodiscard]] size_t bytes() const { return keys_.size() + values_.size() + order_.size() * sizeof(uint32_t); }
    /// The `i`-th in the keys' order.
    ///@{
    [[nodiscard]] Bytes key(size_t i) const { return Bytes(keys_).subspan(order_[i] * key_size_, key_size_); }
    [[nodiscard]] Bytes value(size_t i) const { return Bytes(values_).subspan(order_[i] * value_size_, value_size_); }
    ///@}

  private:
    size_t key_size_, value_size_;
    std::vector<std::byte> keys_, values_;
    std::vector<uint32_t> order_;
};

/// One key that isn't as it was. An empty `before`: it is new; an empty `after`: it is gone.
struct MapChange {
    Bytes key, before, after;
};
/// Every key that is new, gone, or has another value, in the keys' order: that of their bytes, as numbers where the first are 1,
/// 2, 4 or 8 bytes long. Both are sorted.
void each_change(const MapImage &before, const MapImage &after, const std::function<void(const MapChange &)> &see);

} // namespace rawbpf::inline v0::running
