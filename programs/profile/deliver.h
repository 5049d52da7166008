// What happens to a sample once its stacks are numbers: handed on one by one with names, or counted and handed on at the end. A
// live run and a report from a capture file both end here, so they can't differ.
#pragma once

#include <string>
#include <vector>

#include "programs/processes/early_ends.h"
#include "programs/processes/label_sets.h"
#include "programs/processes/namer.h"
#include "programs/processes/stack_ends.h"
#include "programs/processes/stacks.h"
#include "programs/profile/profiler.h"
#include "programs/profile/record.h"
#include "programs/session/kernel_names.h"

namespace rawbpf::inline v0::profile {

class Deliverer {
  public:
    struct Clock {
        uint64_t start_ns = 0;      ///< CLOCK_MONOTONIC when the run began
        uint64_t start_wall_ns = 0; ///< CLOCK_REALTIME at the same moment
    };
    Deliverer(processes::StackTree &tree, processes::Namer &namer, Delivery delivery, bool names, Sink &sink)
        : tree_(tree), namer_(namer), kernel_names_(tree, namer), delivery_(delivery), names_(names), sink_(sink) {}
    void set_clock(const Clock &clock) { clock_ = clock; }
    /// Stacks of this many frames count as truncated, unless the walk only went astray and was cut to less.
    void set_most_frames(uint32_t frames) { most_frames_ = frames; }

    /// Delivery::counted: from the beginning, stacks of different threads are counted apart.
    void keep_threads_apart() { counts_.keep_threads_apart(); }
    /// From the beginning: what samples' labels are. It must outlive this.
    void label_by(const processes::LabelSets &sets) { label_sets_ = &sets; }
    /// From the beginning: samples are waits, so their kernel stacks begin at the scheduler.
    void expect_waits() { waits_ = true; }

    /// `count` of them: more than one only with Delivery::counted.
    void add(const processes::InternedSample &sample, uint64_t count = 1);
    /// Delivery::each: hands on what can be named without a new pass over the kernel's symbols, or all when one is due
    /// (KernelNames). `now_ns` is CLOCK_MONOTONIC.
    Result<void> flush(uint64_t now_ns);
    /// Hands on all that is left, named: at the end, or because the tree is about to be cleared (then the namer is, too).
    Result<void> finish();

    [[nodiscard]] uint64_t shown() const { return shown_; }
    [[nodiscard]] size_t pending() const { return pending_.size(); }
    [[nodiscard]] size_t distinct() const { return counts_.entries().size(); }
    [[nodiscard]] size_t memory() const { return counts_.memory() + pending_.capacity() * sizeof(processes::InternedSample); }
    /// Shown but incomplete, by reason.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> degraded() const;
    [[nodiscard]] const processes::EarlyEnds &early_ends() const { return early_; }
    /// Why user stacks that were looked at for tables ended, by reason; empty when none was.
    [[nodiscard]] std::vector<std::pair<std::string, uint64_t>> stack_ends() const { return ends_.list(); }

  private:
    Result<void> emit();
    Result<void> emit_counted();
    [[nodiscard]] NamedSample name(const processes::InternedSample &sample);
    void count_incomplete(const processes::InternedSample &sample, uint64_t count);
    [[nodiscard]] std::vector<uint32_t> kernel_stacks() const;
    [[nodiscard]] bool truncated(int32_t bytes, uint32_t node, uint8_t ending) const;
    [[nodiscard]] bool user_truncated(const processes::InternedSample &sample) const;

    processes::StackTree &tree_;
    processes::Namer &namer_;
    session::KernelNames kernel_names_;
    Delivery delivery_;
    bool names_, waits_ = false;
    Sink &sink_;
    const processes::LabelSets *label_sets_ = nullptr;
    Clock clock_;
    uint32_t most_frames_ = RAWBPF_STACK_FRAMES;
    std::vector<processes::InternedSample> pending_;
    processes::CountTable counts_;
    uint64_t shown_ = 0, truncated_ = 0, user_unreadable_ = 0, kernel_unreadable_ = 0;
    processes::StackEnds ends_;
    processes::EarlyEnds early_;
};

} // namespace rawbpf::inline v0::profile
