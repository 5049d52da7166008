// Gives this thread a higher scheduling priority for a short time.
#pragma once

#include <string_view>

namespace rawbpf::inline v0::sys {

/// As long as it lives, this thread runs before all ordinary ones (SCHED_RR with the lowest priority), where it may; afterwards
/// as it did. For milliseconds at a time: who has to have dealt with an exec before the new program gets to what is looked at.
class RealtimePriority {
  public:
    explicit RealtimePriority(
        std::string_view why = "the command's exec is to be dealt with before its first function is reached");
    ~RealtimePriority();
    RealtimePriority(const RealtimePriority &) = delete;
    RealtimePriority &operator=(const RealtimePriority &) = delete;

  private:
    long before_ = -1; ///< the policy; negative: nothing to restore
};

} // namespace rawbpf::inline v0::sys
