// How the frames are left of code that a just-in-time compiler has made, where nobody tells it: neither tables nor a jitdump, and
// rbp is a register like any other. PURE.
//
// Such a compiler often gives all its code one frame, made where the interpreter enters it: Ruby's YJIT saves three registers
// there and jumps from function to function; PHP's runs in the frame of execute_ex. Then the return address is as far above the
// stack pointer everywhere, and so is rbp, if it was saved:
//
//      a stack that ends in the code    tries 1, 2, 3 ... words: which is the first that leads to the thread's first function,
//                                       or to the end of what was copied?
//      32 such stacks                   two thirds say the same: that is the form; some have words pushed, or are deeper than their
//                                       copy, or are left by frame pointers. Otherwise there is none, and
//                                       the code is left alone
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "programs/unwind/program.h"

namespace rawbpf::inline v0::processes {

class FrameSearch {
  public:
    static constexpr int16_t kMost = 32;     ///< words; larger frames aren't looked for
    static constexpr int16_t kMostSaved = 7; ///< registers, of which rbp may be any
    static constexpr int kMostOn = 4;        ///< sizes of a stack that lead on: so many are tried with a saved rbp
    static constexpr uint32_t kStacks = 32;  ///< that are asked
    static constexpr uint32_t kAgree = 22;   ///< of these, at least
    static constexpr uint32_t kLooked = 500; ///< stacks of the process are copied at most, until so many could be asked

    /// Where a stack goes with frames of a form.
    enum class Leads : uint8_t {
        nowhere,
        on,    ///< a frame further, at least
        whole, ///< to the thread's first function, or as far as it was copied
    };

    /// A stack of the process was copied, whether or not it ends in such code.
    void looked() { ++looked_; }
    /// What one stack says: `leads(form)`. The smallest frame is it; a larger one leads to the root, too, where it skips a frame
    /// that always calls this code. That rbp was saved is tried of those that lead on, as few callers need it.
    template <class Try> void ask(const Try &leads) {
        ++asked_;
        int lead_on = 0;
        for (int16_t words = 1; words <= kMost; ++words) {
            UniformFrame form{words, 0};
            const Leads where = leads(form);
            if (where == Leads::whole) return vote(form);
            if (where == Leads::nowhere || ++lead_on > kMostOn) continue;
            for (form.fp = -2; form.fp >= -1 - kMostSaved; --form.fp)
                if (leads(form) == Leads::whole) return vote(form);
        }
    }
    /// A stack that comes through such code by frame pointers: it speaks for no form, as all code there would be left by it.
    void against() { ++asked_; }
    /// Whether more stacks are wanted.
    [[nodiscard]] bool asks() const { return asked_ < kStacks && looked_ < kLooked; }
    /// nullopt: not known (yet), or not the same everywhere.
    [[nodiscard]] std::optional<UniformFrame> found() const {
        if (asked_ < kStacks) return std::nullopt;
        for (const auto &[form, votes] : votes_)
            if (votes >= kAgree) return form;
        return std::nullopt;
    }

  private:
    void vote(UniformFrame form) {
        const auto known = std::find_if(votes_.begin(), votes_.end(), [&](const auto &one) { return one.first == form; });
        if (known != votes_.end())
            ++known->second;
        else
            votes_.emplace_back(form, 1);
    }

    std::vector<std::pair<UniformFrame, uint32_t>> votes_;
    uint32_t asked_ = 0, looked_ = 0;
};

} // namespace rawbpf::inline v0::processes
