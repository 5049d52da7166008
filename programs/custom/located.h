// A trace's addresses as numbers: what has to be asked at once, while its process is there. No symbol is read here.
//
//      CustomTrace --locate--> LocatedTrace     of a walk by frame pointers from a function's first instruction the caller is
//                                               missing: it is put in, or where nobody knows that, both stacks are kept
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "programs/custom/tracer.h"
#include "programs/processes/following.h"
#include "programs/processes/label_sets.h"
#include "programs/processes/stacks.h"
#include "programs/session/locator.h"

namespace rawbpf::inline v0::custom {

/// A trace whose stacks are numbers.
struct LocatedTrace : session::LocatedStacks {
    Record head{}; ///< its sizes and its caller mean nothing any more
    /// The user stack with the caller behind its first frame: the right one where a function begins at that frame. kNone: there
    /// is no other.
    uint32_t with_caller = processes::kNone;
    uint32_t labels = processes::LabelSets::kEmpty; ///< the running request's: their number
    bool missed = false;                            ///< the user stack couldn't be read
    bool cut = false;                               ///< the user stack goes on beyond the most frames
    bool truncated = false;                         ///< one of the stacks goes on
};

/// Whether a walk that began at a function's first instruction lacks its second frame: `caller` is where that instruction returns
/// to. `never` says that such a walk was seen to lack it there before: then it does also where two calls in a row come from one
/// place.
[[nodiscard]] bool lacks_caller(std::span<const uint64_t> frames, uint64_t caller, bool never);

inline constexpr uint32_t kDeepest = 127; ///< frames of a user stack, unless less is asked for

class Places {
  public:
    /// Frames of user stacks that the programs walk by frame pointers, at most: `depth`, or what the kernel allows.
    explicit Places(uint32_t depth) : most_frames_(session::most_frames(depth)) {}

    /// Whose processes these are, and their unwind tables: watch() and tick() are for whoever reads the traces.
    [[nodiscard]] processes::Following &following() { return following_; }
    /// Whether a trace is of the workload.
    [[nodiscard]] bool wanted(const Record &head);
    /// Whether a function begins at that place of tree().
    using Begins = std::function<bool(uint32_t place)>;
    /// `begins` empty: that is found out later, so both stacks are kept.
    [[nodiscard]] LocatedTrace locate(const CustomTrace &trace, const Begins &begins = {});

    [[nodiscard]] const processes::StackTree &tree() const { return tree_; }
    [[nodiscard]] const processes::LabelSets &label_sets() { return following_.labels().sets(); }
    [[nodiscard]] const processes::ModuleTable &modules() { return following_.table().modules(); }
    /// Whether so much is kept that clear() is due.
    [[nodiscard]] bool full() { return tree_.nodes().size() > (1u << 20) || following_.labels().sets().full(); }
    /// Forgets; what locate() gave before means nothing any more.
    void clear() {
        tree_.clear();
        following_.labels().sets().clear();
    }

  private:
    [[nodiscard]] bool lacks_caller(const CustomTrace &trace, const processes::UserStack &user, const Begins &begins);
    void put_caller_in(processes::UserStack &user, uint64_t caller);

    uint32_t most_frames_;
    processes::Following following_{true};
    processes::StackTree tree_;
    session::Locator locator_{following_.table(), following_.unwinding(), tree_};
    std::set<std::pair<uint32_t, uint64_t>> without_caller_; ///< module and offset of instructions whose walks lack the caller
    std::vector<uint64_t> frames_;                           ///< of one stack
};

} // namespace rawbpf::inline v0::custom
