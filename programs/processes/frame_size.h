// How large the frames are of code that a just-in-time compiler has made, where nobody tells it: neither tables nor a jitdump,
// and rbp is a register like any other. PURE.
//
// Such a compiler often gives all its code one frame, made where the interpreter calls it (Ruby's YJIT saves three registers
// there and jumps from function to function). Then the return address is as far above the stack pointer everywhere:
//
//      a stack that ends in the code    tries 1, 2, 3 ... words: which is the first that leads to the thread's first function?
//      32 such stacks                   two thirds say the same: that is the size; some have words pushed, or are deeper than their
//                                       copy. Otherwise it has none, and is left alone
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace rawbpf::inline v0::processes {

class FrameSize {
  public:
    static constexpr int16_t kMost = 32;     ///< words; larger frames aren't looked for
    static constexpr uint32_t kStacks = 32;  ///< that are asked
    static constexpr uint32_t kAgree = 22;   ///< of these, at least
    static constexpr uint32_t kLooked = 500; ///< stacks of the process are copied at most, until so many could be asked

    /// A stack of the process was copied, whether or not it ends in such code.
    void looked() { ++looked_; }
    /// What one stack says: `leads(words)` is whether frames of that many words make it whole. The smallest is the frame; a
    /// larger one leads to the root, too, where it skips a frame that always calls this code.
    template <class Leads> void ask(const Leads &leads) {
        int16_t words = 1;
        while (words <= kMost && !leads(words)) ++words;
        ++votes_[words <= kMost ? static_cast<size_t>(words) : 0];
        ++asked_;
    }
    /// Whether more stacks are wanted.
    [[nodiscard]] bool asks() const { return asked_ < kStacks && looked_ < kLooked; }
    /// In words, from the stack pointer to behind the return address; nullopt: not known (yet), or not the same everywhere.
    [[nodiscard]] std::optional<int16_t> words() const {
        if (asked_ < kStacks) return std::nullopt;
        for (int16_t words = 1; words <= kMost; ++words)
            if (votes_[static_cast<size_t>(words)] >= kAgree) return words;
        return std::nullopt;
    }

  private:
    std::array<uint32_t, kMost + 1> votes_{}; ///< by words; 0: none of them leads there
    uint32_t asked_ = 0, looked_ = 0;
};

} // namespace rawbpf::inline v0::processes
