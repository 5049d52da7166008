#include "programs/custom/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "programs/custom/names.h"
#include "programs/processes/following.h"
#include "programs/session/run_info.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0::custom {
namespace {

constexpr size_t kAtOnce = 8192; // traces that are taken before anything else is looked at
constexpr int kTickMs = 50;

class Run {
  public:
    Run(RunOptions options, render::Writer &writer, RunNews &news)
        : options_(std::move(options)), writer_(writer), news_(news), session_(options_.observed),
          names_(options_.detail, options_.debug_info) {}

    Result<RunEnd> run() {
        TRY(open());
        TRY(observe());
        start_ns_ = sys::monotonic_ns();
        end_.run = session::describe_run(options_.command, options_.version, TRY(online_cpus()).size(), start_ns_);
        TRY(tracer_->attach());
        TRY(news_.attached(*tracer_));
        for (const std::string &text : tracer_->notes()) news_.note(text);
        view_.emplace(shown(), names_, end_.run, start_ns_, writer_);
        TRY(view_->start());
        if (session_.child() >= 0) following().first_steps();
        TRY(session_.go());
        TRY(loop());
        following().end_first_steps();
        news_.over();
        end_.finished =
            tracer_->finish([this](const CustomTrace &trace) { take(trace); },
                            [this] { return view_->flush(sys::monotonic_ns()).has_value() && news_.go_on(tracer_->waiting()); });
        end_.ending = session_.end();
        TRY(outcome());
        return std::move(end_);
    }

  private:
    [[nodiscard]] processes::Following &following() { return names_.following(); }

    // Everything that can be wrong before anything runs.
    Result<void> open() {
        CustomOptions &options = options_.tracer;
        options.follow_only = !options_.observed.workload.empty();
        if (options_.object) options.kinds = kinds_of(*options_.object);
        if (!options_.pin.empty()) options.kinds = {ProgramKind::probe, ProgramKind::perf_event, ProgramKind::tracepoint};
        tracer_ = TRY(CustomTracer::open(options));
        ExternalOptions where;
        where.target = options_.target;
        if (options_.object)
            TRY(tracer_->load_external(std::move(*options_.object), where));
        else if (!options_.target.empty())
            TRY(tracer_->add_function(options_.target, options_.argument));
        return options_.pin.empty() ? Result<void>() : tracer_->pin(options_.pin);
    }

    Result<void> observe() {
        if (const UnwindProgramOptions *program = tracer_->unwinds())
            TRY(following().unwind(tracer_->generic_object(), options_.tracer.unwind.memory, *program));
        if (following().unwinds() && !options_.observed.workload.empty()) following().prepare(options_.observed.workload);
        TRY(session_.open());
        if (session_.child() >= 0) {
            following().symbols().set_owner(session_.owner());
            TRY(tracer_->follow(session_.child()));
        }
        const std::vector<int> &pids = options_.observed.pids;
        Result<void> watched = pids.empty() ? following().watch(session_.child()) : following().watch(pids, options_.children);
        if (watched) return {};
        const std::string_view what = session_.child() >= 0 ? "following what the command starts"
                                      : !pids.empty()       ? "following what the processes start"
                                                            : "";
        if (!what.empty()) return Unexpected(in_context(std::move(watched).error(), what));
        news_.note(format("processes that end early may go without names: {}", watched.error().message()));
        return {};
    }

    ViewOptions shown() const {
        ViewOptions out = options_.view;
        if (tracer_->unwinds()) out.depth = std::min(options_.tracer.unwind.depth, out.depth);
        out.off_cpu = options_.tracer.off_cpu;
        out.origins = options_.tracer.sample_hz != 0 || out.off_cpu;
        out.guarded = tracer_->guarded();
        return out;
    }

    void take(const CustomTrace &trace) {
        if (names_.wanted(trace.head))
            view_->trace(trace);
        else
            ++filtered_;
    }

    Result<void> loop() {
        session::RunLoop &loop = session_.loop();
        TRY(loop.add(tracer_->poll_fd()));
        TRY(following().add_to(loop.epoll(), 0));
        for (;;) {
            (void)tracer_->may_sleep(); // gives back what was read; what lies in the ring already can wait for the tick
            if (!TRY(loop.wait(tracer_->waiting() ? 0 : following().wait_ms(kTickMs)))) return {};
            TRY(following().tick([this] {
                tracer_->poll([this](const CustomTrace &trace) { take(trace); }, kAtOnce);
                following().behind(tracer_->oldest_ns());
            }));
            TRY(view_->flush(sys::monotonic_ns()));
            news_.progress(*view_);
            if (TRY(loop.over())) return {};
        }
    }

    Result<void> outcome() {
        const Counts counts = TRY(tracer_->counts());
        view_->drain();
        end_.ledger = ledger_of(*tracer_, counts, view_->shown(), filtered_);
        end_.ledger.degraded = view_->degraded();
        end_.ledger.stack_ends = view_->stack_ends();
        end_.set_cost(session_, tracer_->cost(), following().stats().pool_bytes, names_.advice(options_.tracer.unwind.by));
        TRY(view_->finish(end_.ledger));
        end_.totals = view_->totals();
        warn(counts);
        return {};
    }

    void warn(const Counts &counts) {
        std::vector<std::string> &out = end_.warnings;
        if (counts.cleared)
            out.push_back(format("{} contexts in custom_context_map were taken away: their threads were preempted before they "
                                 "jumped. custom_context_by_thread has no such losses",
                                 counts.cleared));
        end_.warn_of_skipped(tracer_->cost());
        if (following().events_lost())
            out.push_back(format("{} process events were lost: some names may be missing", following().events_lost()));
        for (const std::string &warning : following().warnings()) out.push_back(warning);
        if (options_.debug_info)
            for (const std::string &warning : options_.debug_info->warnings()) out.push_back(warning);
    }

    RunOptions options_;
    render::Writer &writer_;
    RunNews &news_;
    session::Session session_;
    std::unique_ptr<CustomTracer> tracer_; // whose maps the names' tables are put into
    Names names_;
    std::optional<View> view_;
    RunEnd end_;
    uint64_t start_ns_ = 0, filtered_ = 0;
};

} // namespace

Result<RunEnd> run_custom(RunOptions options, render::Writer &writer, RunNews &news) {
    return Run(std::move(options), writer, news).run();
}

} // namespace rawbpf::inline v0::custom
