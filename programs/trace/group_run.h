// Questions in one line: `rawbpf trace PROBE --by comm --hist duration --top 10 --every 1s`. The kernel adds up; what it has come
// to is read from its map and shown:
//
//      at the end           all of it
//      with every_ns        after each interval what came in between
//      on a terminal        once a second all of it, drawn over the last table
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "programs/render/frame.h"
#include "programs/render/writer.h"
#include "programs/trace/aggregate.h"
#include "programs/trace/live_text.h"
#include "programs/trace/tracer.h"
#include "programs/trace/view.h"

namespace rawbpf::inline v0::trace {

/// How groups are shown, and when.
struct GroupsShown {
    GroupFormat format = GroupFormat::text;
    bool count = false;    ///< how many was asked for
    size_t top = SIZE_MAX; ///< only so many, the largest
    uint64_t every_ns = 0; ///< the groups of each interval; 0: all, at the end
    int terminal = -1;     ///< they are drawn on it while they grow; -1: on none
};

/// A run's groups: read now and then, and shown.
class GroupRun {
  public:
    /// `start_ns`: CLOCK_MONOTONIC, of `run`. `view` names places, and stacks where groups are told apart by them.
    GroupRun(const GroupsShown &shown, const Tracer &tracer, View &view, const RunInfo &run, const btf::Btf *kernel,
             render::Writer &writer, uint64_t start_ns);

    /// Programs run from here on.
    void begin(uint64_t now_ns) { due_ns_ = now_ns + every_ns_; }
    /// To be called often: shows what is due.
    [[nodiscard]] Result<void> tick(uint64_t now_ns);
    /// All of it, or with `every_ns` the last interval. The tracer has finished.
    [[nodiscard]] Result<void> finish(uint64_t now_ns);

  private:
    [[nodiscard]] Result<void> show(uint64_t now_ns, bool last);
    [[nodiscard]] bool live() const { return shown_.terminal >= 0; }
    [[nodiscard]] bool by_interval() const { return shown_.every_ns != 0; }

    GroupsShown shown_;
    const Tracer &tracer_;
    View &view_;
    const RunInfo &run_;
    const btf::Btf *kernel_;
    render::Writer &writer_;
    uint64_t start_ns_, every_ns_, due_ns_, intervals_ = 0;
    LiveText table_;
    bool first_ = true;
    std::vector<GroupRow> before_;
};

} // namespace rawbpf::inline v0::trace
