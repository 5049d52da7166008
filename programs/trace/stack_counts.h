// Events as a profile: equal stacks counted, and drawn by the profiler's own formats.
//
//      event --add--> places, numbered --count--> the first of each kind, and how many     --finish--> names --> renderer
//                                        ^                                                   folded, svg, top, pprof
//                                        +-- tick: what the kernel counted
//
// A profile's sample says "time was spent here", this one "here it happened": at the probe, called this way. So the width of a
// frame is how often the event happened below it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/processes/stacks.h"
#include "programs/render/renderer.h"
#include "programs/session/stack_counting.h"
#include "programs/trace/names.h"
#include "programs/trace/tracer.h"

namespace rawbpf::inline v0::trace {

class StackCounts {
  public:
    StackCounts(EventNames &names, render::Renderer &to, RunInfo run, uint64_t start_ns);

    /// From the beginning: stacks of different threads aren't equal (TraceOptions::threads_apart).
    void keep_threads_apart() { table_.keep_threads_apart(); }
    /// The kernel counts from here on (Tracer::counting()), which must be told what processes map. Both must outlive this; `live`
    /// is who knows the names.
    [[nodiscard]] Result<void> count_in_kernel(Tracer &tracer, Names &live);
    void add(const Event &event);
    /// Takes what the kernel counted, now and then; to be called often.
    [[nodiscard]] Result<void> tick(uint64_t now_ns);
    /// Names and draws what there is, before the tree that its numbers are of is cleared.
    void draw();
    /// Takes the rest, names and draws it. All events must have been added, and the tracer be detached.
    [[nodiscard]] Result<void> stop();
    /// After stop().
    void finish(Ledger ledger);
    /// Events counted in the kernel.
    [[nodiscard]] uint64_t counted() const { return counts_.counted(); }
    /// Those of them whose first one never came: it was lost, or left out when somebody asked a second time to stop.
    [[nodiscard]] uint64_t unknown() const { return counts_.unknown(); }
    [[nodiscard]] uint64_t unreadable() const { return unreadable_; }

  private:
    void take(const processes::InternedSample &sample, uint64_t count);
    void take_counted(const processes::InternedSample &sample, uint64_t more);

    EventNames &names_;
    Names *live_ = nullptr; ///< with tracer_
    render::Renderer &to_;
    RunInfo run_;
    uint64_t start_ns_;
    Tracer *tracer_ = nullptr;
    session::StackCounts counts_;
    processes::CountTable table_;
    uint64_t last_ns_ = 0, unreadable_ = 0;
    uint64_t cut_ = 0; // events whose interpreter's frames were lost
};

} // namespace rawbpf::inline v0::trace
