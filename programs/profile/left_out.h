// Processes whose samples the program doesn't send: the map profile_pids with PROFILE_PIDS_LEFT_OUT, kept up to date.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_set>

#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::profile {

inline constexpr uint32_t kMostLeftOut = 1024; ///< in the map, before it starts anew

class LeftOut {
  public:
    /// A sample of a process that isn't wanted came: it is to be left out from then on.
    void met(uint32_t pid) { strangers_.insert(pid); }
    /// Brings the map up to date: those met since the last time, without those whose numbers the family's children have now.
    [[nodiscard]] Result<void> update(Map &pids, const std::function<bool(uint32_t)> &wanted);

  private:
    std::unordered_set<uint32_t> left_out_, strangers_; // in the map, and to be put there
};

} // namespace rawbpf::inline v0::profile
