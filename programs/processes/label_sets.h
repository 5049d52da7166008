// The labels of samples, each distinct set kept once: a sample has its number.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "programs/processes/id_index.h"
#include "programs/render/frame.h"

namespace rawbpf::inline v0::processes {

class LabelSets {
  public:
    static constexpr uint32_t kEmpty = 0;
    /// The number of a set; kEmpty of one without labels.
    [[nodiscard]] uint32_t intern(Labels set);
    /// nullptr: kEmpty. `number` is one that intern() gave.
    [[nodiscard]] const LabelsPtr &operator[](uint32_t number) const { return sets_[number]; }
    /// Whether there are so many that it is time for clear(): ids of requests come once each.
    [[nodiscard]] bool full() const { return sets_.size() > kMost; }
    /// How many there are, with the empty one.
    [[nodiscard]] size_t size() const { return sets_.size(); }
    /// Numbers start anew.
    void clear();

  private:
    static constexpr size_t kMost = 1 << 16;
    std::vector<LabelsPtr> sets_{nullptr};
    IdIndex index_;
};

} // namespace rawbpf::inline v0::processes
