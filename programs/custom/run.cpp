#include "programs/custom/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "programs/custom/names.h"
#include "programs/custom/recorder.h"
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
        : options_(std::move(options)), writer_(writer), news_(news), session_(options_.observed) {}

    Result<RunEnd> run() {
        TRY(open());
        begin_places();
        TRY(observe());
        start_ns_ = sys::monotonic_ns();
        end_.run = session::describe_run(options_.command, options_.version, TRY(online_cpus()).size(), start_ns_);
        TRY(tracer_->attach());
        TRY(news_.attached(*tracer_));
        for (const std::string &text : tracer_->notes()) news_.note(text);
        TRY(begin_output());
        if (session_.child() >= 0) following().first_steps();
        TRY(session_.go());
        TRY(loop());
        following().end_first_steps();
        news_.over();
        end_.finished = tracer_->finish([this](const CustomTrace &trace) { take(trace); },
                                        [this] { return flush().has_value() && news_.go_on(tracer_->waiting()); });
        end_.ending = session_.end();
        TRY(outcome());
        return std::move(end_);
    }

  private:
    [[nodiscard]] processes::Following &following() { return places_ ? places_->following() : names_->following(); }
    [[nodiscard]] const Tally &tally() const { return recorder_ ? recorder_->tally() : view_->tally(); }
    [[nodiscard]] Result<void> flush() {
        const uint64_t now = sys::monotonic_ns();
        return recorder_ ? recorder_->flush(now) : view_->flush(now);
    }

    // Everything that can be wrong before anything runs.
    Result<void> open() {
        CustomOptions &options = options_.tracer;
        options.languages = options_.language_view != processes::ScriptView::native;
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
        TRY(following().walk_scripts(tracer_->generic_object(), options_.language_view));
        tracer_->tell_codes([this](Bytes record) { (void)following().scripts().take_code(record); },
                            [this](Bytes record) { following().scripts().lost_code(record); });
        const std::vector<std::string> &labels = options_.tracer.labels;
        if (!labels.empty()) TRY(following().labels().start(tracer_->generic_object(), labels));
        if (following().unwinds() && !options_.observed.workload.empty()) following().prepare(options_.observed.workload);
        TRY(session_.open());
        if (session_.child() >= 0) {
            following().symbols().set_owner(session_.owner());
            TRY(tracer_->follow(session_.child()));
        }
        const std::vector<int> &pids = options_.observed.pids;
        for (const int pid : pids) following().labels().want(static_cast<uint32_t>(pid));
        Result<void> watched = pids.empty() ? following().watch(session_.child()) : following().watch(pids, options_.children);
        if (watched) return {};
        const std::string_view what = session_.child() >= 0 ? "following what the command starts"
                                      : !pids.empty()       ? "following what the processes start"
                                                            : "";
        if (!what.empty()) return Unexpected(in_context(std::move(watched).error(), what));
        news_.note(format("processes that end early may go without names: {}", watched.error().message()));
        return {};
    }

    // Where addresses are, as soon as it is known how stacks are walked.
    void begin_places() {
        const uint32_t depth = tracer_->unwinds() ? std::min(options_.tracer.unwind.depth, kDeepest) : kDeepest;
        if (options_.record_fd >= 0)
            places_.emplace(depth);
        else
            names_.emplace(options_.detail, options_.debug_info, depth);
    }

    Result<void> begin_output() {
        const bool samples = options_.tracer.sample_hz != 0, off_cpu = options_.tracer.off_cpu;
        if (places_) {
            recorder_.emplace(options_.record_fd, Settings{samples, off_cpu, tracer_->guarded(), options_.tracer.unwind.by},
                              *places_);
            return recorder_->start(end_.run, start_ns_);
        }
        ViewOptions view = options_.view;
        view.off_cpu = off_cpu;
        view.origins = samples || off_cpu;
        view.guarded = tracer_->guarded();
        view_.emplace(view, *names_, end_.run, start_ns_, writer_);
        return view_->start();
    }

    void take(const CustomTrace &trace) {
        if (places_ ? !places_->wanted(trace.head) : !names_->wanted(trace.head))
            ++filtered_;
        else if (recorder_)
            recorder_->trace(places_->locate(trace));
        else
            view_->trace(names_->locate(trace));
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
            TRY(flush());
            news_.progress(tally());
            if (TRY(loop.over())) return {};
        }
    }

    Result<void> outcome() {
        const Counts counts = TRY(tracer_->counts());
        if (view_) view_->drain();
        end_.ledger = ledger_of(*tracer_, counts, tally().shown(), filtered_);
        end_.ledger.degraded = tally().degraded();
        end_.ledger.stack_ends = tally().stack_ends();
        end_.set_languages(following(), tracer_->no_languages());
        end_.set_cost(session_, tracer_->cost(), following().stats().pool_bytes,
                      names_ ? names_->advice(options_.tracer.unwind.by) : std::vector<render::StackAdvice>());
        end_.totals = tally().totals();
        if (view_) TRY(view_->finish(end_.ledger));
        warn(counts);
        return recorder_ ? recorder_->finish(end_.recorded()) : Result<void>();
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
    std::optional<Names> names_;           ///< and
    std::optional<View> view_;             ///< or
    std::optional<Places> places_;         ///< and
    std::optional<Recorder> recorder_;     ///< with RunOptions::record_fd
    RunEnd end_;
    uint64_t start_ns_ = 0, filtered_ = 0;
};

} // namespace

Result<RunEnd> run_custom(RunOptions options, render::Writer &writer, RunNews &news) {
    return Run(std::move(options), writer, news).run();
}

} // namespace rawbpf::inline v0::custom
