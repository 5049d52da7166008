// Processes whose samples the program doesn't send: the map profile_pids with PROFILE_PIDS_LEFT_OUT, kept up to date.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_set>

#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::profile {

inline constexpr uint32_t kMostLeftOut = 1024; ///< in the map, before it starts anew

class LeftOut {
  public:
    /// A sample of a process that isn't wanted came: it is left out from now on. What fails is told by update().
    void met(Map &pids, uint32_t pid);
    /// Takes out of the map those whose numbers the family's children have now.
    [[nodiscard]] Result<void> update(Map &pids, const std::function<bool(uint32_t)> &wanted);

  private:
    [[nodiscard]] Result<void> leave_out(Map &pids, uint32_t pid);

    std::unordered_set<uint32_t> left_out_; ///< what is in the map
    std::optional<Error> failed_;
};

} // namespace rawbpf::inline v0::profile
