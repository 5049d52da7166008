// Stacks of waits that have only begun: of processes that had no unwind tables yet, made of copies. A wait's own record comes
// when the thread is back, with the stack as frame pointers had it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "programs/profile/sample.h"

namespace rawbpf::inline v0::profile {

class BegunWaits {
  public:
    struct Stack {
        uint64_t left_ns = 0;
        uint32_t ending = 0; ///< RecordHead.ending
        std::vector<uint64_t> frames;
        std::vector<unwind::FrameFunction> functions; ///< RawSample's
    };
    /// The sample of a thread that has just left its CPU, at its t_ns. Of a thread the last one counts.
    void keep(const RawSample &sample) {
        if (sample.head.ending & UNWIND_COPIED) return; // the copy led to nothing better
        if (stacks_.size() >= kMost) stacks_.clear();
        stacks_[sample.head.tid] = {sample.head.t_ns,
                                    sample.head.ending,
                                    {sample.user.begin(), sample.user.end()},
                                    {sample.functions.begin(), sample.functions.end()}};
    }
    /// That of the wait which began then, or nullptr; good until the next call. It is asked for once.
    [[nodiscard]] const Stack *take(uint32_t tid, uint64_t left_ns) {
        const auto at = stacks_.find(tid);
        if (at == stacks_.end()) return nullptr;
        taken_ = std::move(at->second);
        stacks_.erase(at);
        return taken_.left_ns == left_ns ? &taken_ : nullptr;
    }

  private:
    static constexpr size_t kMost = 1 << 16; // threads
    std::unordered_map<uint32_t, Stack> stacks_;
    Stack taken_;
};

} // namespace rawbpf::inline v0::profile
