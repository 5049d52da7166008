// Events to what the user asked to see.
//
//      Tracer --Event--> View: calls paired, stacks named, times gathered --Shown--> Sink: the format --> Writer
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "programs/render/frame.h"
#include "programs/render/writer.h"
#include "programs/trace/calls.h"
#include "programs/trace/group_stacks.h"
#include "programs/trace/histogram.h"
#include "programs/trace/live_text.h"
#include "programs/trace/names.h"
#include "programs/trace/sink.h"
#include "programs/trace/stack_counts.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

class View {
  public:
    View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
         uint64_t start_ns, render::Writer &writer);
    /// The same of a recording, whose names are brought along. Then there is no following(), and count_in_kernel() isn't for it.
    View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
         uint64_t start_ns, render::Writer &writer, EventNames &names);
    View(const View &) = delete;
    View &operator=(const View &) = delete;

    [[nodiscard]] Result<void> start();
    /// The processes that events come from. To be watched before anything is attached where wants_watch() says so, and ticked
    /// often, with the reading of events inside.
    [[nodiscard]] processes::Following &following() { return live_names_->following(); }
    /// Whether names() of short-lived processes would be asked for: stacks, or arguments of programs that may be addresses.
    [[nodiscard]] bool wants_watch(int workload) const;
    /// Stacks that are only counted (ViewOptions::stacks) are counted in the kernel from here on, where it can: before the tracer
    /// is attached, after following() watches.
    [[nodiscard]] Result<void> count_in_kernel(Tracer &tracer);
    /// Takes the rest of what the kernel counted: after the tracer's finish(), before its counts() are asked for.
    [[nodiscard]] Result<void> stop_counting();
    /// nullptr: events are shown, not only counted.
    [[nodiscard]] const StackCounts *stack_counts() const { return stacks_.get(); }
    /// With ViewOptions::group_stacks, else nullptr.
    [[nodiscard]] GroupStacks *group_stacks() { return group_stacks_ ? &*group_stacks_ : nullptr; }
    void event(const Event &event);
    /// Writes what has been gathered. To be called often: after each batch of events, and while there are none.
    [[nodiscard]] Result<void> flush(uint64_t now_ns);
    /// A table of the counts so far, with --count on a terminal: drawn over the last one.
    [[nodiscard]] Result<void> redraw(const std::vector<PlaceCounts> &counts, const sys::TerminalSize &size);
    /// The tree that numbers of stacks are of is about to be cleared: all that refers to it is named.
    void part_ends();
    /// What still waits for names, then the counters of incomplete events are final.
    void drain();
    /// Counts, statistics, tables, the ledger.
    [[nodiscard]] Result<void> finish(const std::vector<PlaceCounts> &counts, const Ledger &ledger);
    [[nodiscard]] uint64_t unreadable() const { return sink_ ? sink_->unreadable() : 0; }
    [[nodiscard]] uint64_t stacks_unreadable() const { return stacks_unreadable_ + (stacks_ ? stacks_->unreadable() : 0); }
    [[nodiscard]] const Calls &calls() const { return calls_; }
    [[nodiscard]] std::vector<std::string> warnings() const { return names_.warnings(); }
    /// Why user stacks ended that were walked by tables.
    [[nodiscard]] const processes::StackEnds &stack_ends() const { return names_.ends(); }
    /// What would make more of the user stacks whole; after drain() and stop_counting().
    [[nodiscard]] std::vector<render::StackAdvice> advice(UnwindBy chosen, Arch arch = kHostArch) const {
        return names_.advice(chosen, arch);
    }
    /// A place's function, or where several have that name, the whole probe.
    [[nodiscard]] const std::vector<std::string> &names() const { return place_names_; }

  private:
    View(const ViewOptions &options, const std::vector<ProbeSite> &places, const RunInfo &run, const btf::Btf *kernel,
         uint64_t start_ns, render::Writer &writer, std::unique_ptr<Names> live);
    struct Waiting { // for names
        Event event;
        std::vector<std::byte> record;
        processes::InternedSample stack;
    };
    void show(const Event &event, const NamedStack *stack, uint32_t labels);
    void began_program(const Header &header);
    [[nodiscard]] std::vector<uint32_t> kernel_stacks() const; ///< of what waits
    void show_waiting();
    void counts_table(std::string &out, const std::vector<PlaceCounts> &counts, size_t most_rows);
    void latency_tables();

    ViewOptions options_;
    const std::vector<ProbeSite> &places_;
    const RunInfo &run_;
    uint64_t start_ns_;
    render::Writer &writer_;
    std::unique_ptr<Names> live_names_; ///< nullptr: of a recording
    EventNames &names_;
    std::vector<std::string> place_names_;
    std::unique_ptr<Sink> sink_;          ///< nullptr with stacks_
    std::unique_ptr<StackCounts> stacks_; ///< with ViewOptions::stacks
    std::optional<GroupStacks> group_stacks_;
    std::string out_;
    Calls calls_;
    std::vector<uint64_t> called_, returned_; ///< events of each kind, by place
    std::map<uint32_t, Histogram> latency_;   ///< by place
    std::deque<Waiting> waiting_;
    uint64_t last_event_ns_ = 0, stacks_unreadable_ = 0;
    LiveText live_; ///< redraw()'s table
};

/// The lines of a ledger for each place that fired: what happened to its firings.
[[nodiscard]] std::string places_ledger(const std::vector<std::string> &names, const std::vector<PlaceCounts> &counts);

/// The sites of each USDT probe counted as its first one.
[[nodiscard]] std::vector<PlaceCounts> merge_sites(const std::vector<ProbeSite> &places, std::vector<PlaceCounts> counts);

} // namespace rawbpf::inline v0::trace
