// Traces with names: where their addresses are, at once, while the process is there; what is there, later, many at a time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "programs/custom/tracer.h"
#include "programs/processes/early_ends.h"
#include "programs/processes/following.h"
#include "programs/processes/namer.h"
#include "programs/render/frame.h"
#include "programs/session/kernel_names.h"
#include "programs/session/locator.h"

namespace rawbpf::inline v0::custom {

/// A trace whose stacks are numbers.
struct LocatedTrace : session::LocatedStacks {
    Record head{};
};

/// 128 bits over each frame, leaf first: its file (build-id, or else path) and the offset in it; of the kernel, symbol and
/// offset. So the same stack has the same hash in every run, wherever things are mapped. Of the user's frames those up to main(),
/// where it is there: further out is the C library, which a walk by tables goes through and one by frame pointers doesn't.
/// Inlined functions change nothing. 32 hexadecimal digits.
[[nodiscard]] std::string stack_hash(const std::vector<FramePtr> &kernel, const std::vector<FramePtr> &user);

/// Whether a walk that began at a function's first instruction lacks its second frame: `caller` is where that instruction returns
/// to. `never` says that such a walk was seen to lack it there before: then it does also where two calls in a row come from one
/// place.
[[nodiscard]] bool lacks_caller(std::span<const uint64_t> frames, uint64_t caller, bool never);

class Names {
  public:
    /// `detail`, from `debug_info`: lines, and inlined functions as frames of their own.
    explicit Names(processes::SourceDetail detail = {}, processes::DebugInfo *debug_info = nullptr) : detail_(detail) {
        following_.symbols().set_debug_info(debug_info);
    }
    /// Whose processes these are, and their unwind tables: watch() and tick() are for whoever reads the traces.
    [[nodiscard]] processes::Following &following() { return following_; }
    /// Whether a trace is of the workload.
    [[nodiscard]] bool wanted(const Record &head);
    [[nodiscard]] LocatedTrace locate(const CustomTrace &trace);
    /// When their kernel stacks can be named; name() of one that isn't known costs a pass over the kernel's symbols.
    [[nodiscard]] session::KernelNames &kernel_names() { return kernel_names_; }
    struct Named {
        std::vector<FramePtr> kernel, user; ///< leaf first
    };
    [[nodiscard]] Named name(const LocatedTrace &trace);
    /// `count` traces had that user stack, which wasn't cut at its most frames; before clear().
    void count_end(uint32_t user, uint8_t ending, uint64_t count) { early_.add(namer_, tree_, user, ending, count); }
    /// What would make more of those stacks whole, where many end early.
    [[nodiscard]] std::vector<render::StackAdvice> advice(UnwindBy chosen) {
        return early_.advice(following_.table().modules(), processes::remedy_of(chosen));
    }
    /// Whether so much is kept that clear() is due.
    [[nodiscard]] bool full() const { return tree_.nodes().size() > (1u << 20); }
    /// Forgets; what locate() gave before means nothing any more.
    void clear();

  private:
    [[nodiscard]] bool lacks_caller(const CustomTrace &trace, const processes::UserStack &user);

    processes::SourceDetail detail_;
    processes::Following following_{true};
    processes::StackTree tree_;
    session::Locator locator_{following_.table(), following_.unwinding(), tree_};
    processes::Namer namer_{tree_, following_.table().modules(), following_.symbols(), detail_};
    session::KernelNames kernel_names_{tree_, namer_};
    processes::EarlyEnds early_;
    std::set<std::pair<uint32_t, uint64_t>> without_caller_; ///< module and offset of instructions whose walks lack the caller
    std::vector<uint64_t> frames_;                           ///< of one stack
};

} // namespace rawbpf::inline v0::custom
