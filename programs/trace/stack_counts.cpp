// Events as a profile: equal stacks counted, and drawn by the profiler's own formats.
//
//      event: comm, user stack, kernel stack  -->  a sample, 1  -->  folded, svg, top, pprof (programs/render)
//
// A profile's sample says "time was spent here", this one "here it happened": at the probe, called this way. So the width of a
// frame is how often the event happened below it.
#include "programs/render/renderer.h"
#include "programs/trace/sink.h"

namespace rawbpf::inline v0::trace {
namespace {

class StackCounts final : public Sink {
  public:
    using Sink::Sink;

    void begin(std::string &) override {
        RunInfo run = o_.run;
        run.event = "events";
        run.period = 1;
        o_.view.stacks->begin(run);
    }

    void event(std::string &, const Shown &shown) override {
        const Header &header = shown.event.header;
        NamedSample sample;
        sample.wall_ns = shown.wall_ns;
        sample.t_ns = shown.t_ns;
        sample.pid = header.pid;
        sample.tid = header.tid;
        sample.cpu = header.cpu;
        sample.comm = shown.comm;
        if (shown.stack) {
            sample.kernel = shown.stack->kernel;
            sample.user = shown.stack->user;
            sample.user_missed = shown.stack->user_error != 0;
        }
        last_ns_ = shown.t_ns;
        o_.view.stacks->sample(sample);
    }

    void end(std::string &, const Ending &ending) override {
        Ledger ledger = ending.ledger;
        if (ledger.elapsed_ns == 0) ledger.elapsed_ns = last_ns_;
        o_.view.stacks->end(ledger);
    }

  private:
    uint64_t last_ns_ = 0;
};

} // namespace

std::unique_ptr<Sink> make_stack_counts(SinkOptions options) { return std::make_unique<StackCounts>(options); }

} // namespace rawbpf::inline v0::trace
