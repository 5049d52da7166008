#include "programs/trace/run.h"

#include <optional>
#include <utility>

#include "programs/processes/following.h"
#include "programs/render/text.h"
#include "programs/session/run_info.h"
#include "programs/trace/ledger.h"
#include "programs/trace/recorder.h"
#include "programs/trace/spans.h"
#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/process.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kAtOnce = 8192; // events that are shown before anything else is looked at
constexpr int kTickMs = 50;
constexpr uint64_t kLookNs = 1'000'000'000;
constexpr std::string_view kNoRoomForStacks =
    "the kernel couldn't count the stacks of some events, as most stacks were new, and they came faster than rawbpf could read "
    "them: --ring SIZE gives them more room, --filter and --sample leave some out";

class Run {
  public:
    Run(RunOptions options, render::Writer &writer, RunNews &news)
        : options_(std::move(options)), writer_(writer), news_(news), session_(options_.observed),
          most_(options_.tracer.program.filters.most_events) {}

    Result<RunEnd> run() {
        TRY(open());
        TRY(news_.opened(*tracer_));
        begin_view(TRY(online_cpus()).size());
        TRY(observe());
        TRY(tracer_->attach());
        TRY(news_.attached());
        for (const std::string &text : tracer_->notes()) news_.note(text);
        TRY(recorder_ ? recorder_->start(end_.run, start_ns_) : view_->start());
        if (session_.child() >= 0 && following().unwinds()) following().first_steps();
        TRY(session_.go());
        if (groups_) groups_->begin(session_.armed_ns());
        TRY(loop());
        following().end_first_steps();
        news_.over();
        TRY(tracer_->finish([this](const Event &event) { take(event); },
                            [this] { return flush().has_value() && news_.go_on(tracer_->waiting()); }));
        TRY(recorder_ ? end_recording() : end_view());
        end_.tracer = std::move(tracer_);
        return std::move(end_);
    }

  private:
    [[nodiscard]] processes::Following &following() { return recorder_ ? recorder_->following() : view_->following(); }
    [[nodiscard]] Result<void> flush() {
        const uint64_t now = sys::monotonic_ns();
        return recorder_ ? recorder_->flush(now) : view_->flush(now);
    }

    Result<void> open() {
        TRY(session_.open());
        TraceOptions &options = options_.tracer;
        options.languages = options_.language_view != processes::ScriptView::native;
        options.workload = session_.child();
        for (uint32_t tid : options.program.filters.tids)
            if (!sys::process_exists(static_cast<int>(tid))) return fail(Errc::not_found, "there is no thread {}", tid);
        tracer_ = TRY(Tracer::open(options));
        return {};
    }

    ViewOptions shown() const {
        const ProgramOptions &program = options_.tracer.program;
        ViewOptions out = options_.view;
        out.count = program.mode == Mode::count && !program.aggregate;
        out.calls = program.calls;
        out.returns = program.results && program.calls;
        out.stack = program.stack;
        out.threads_apart = options_.tracer.threads_apart;
        out.group_stacks = program.aggregate && program.aggregate->by_stack();
        out.quiet |= program.aggregate.has_value();
        return out;
    }

    void begin_view(size_t cpus) {
        start_ns_ = sys::monotonic_ns();
        end_.run = session::describe_run(options_.command, options_.version, cpus, start_ns_);
        if (Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf()) kernel_ = std::move(*kernel);
        const ViewOptions view = shown();
        if (options_.record_fd >= 0) {
            Settings settings{view.graph, view.latency, view.count, view.calls, view.returns, view.stack};
            settings.unwind = options_.tracer.unwind.by;
            settings.title = options_.title;
            recorder_.emplace(options_.record_fd, settings, tracer_->places(), kernel_.get());
            return;
        }
        view_.emplace(view, tracer_->places(), end_.run, kernel_.get(), start_ns_, writer_);
        counts_drawn_ = view.count && options_.terminal >= 0;
        if (tracer_->aggregate()) {
            options_.groups.terminal = options_.terminal;
            groups_.emplace(options_.groups, *tracer_, *view_, end_.run, kernel_.get(), writer_, start_ns_);
        }
    }

    // Whose events will come: all of it is there before the first of them.
    Result<void> observe() {
        if (const UnwindProgramOptions *program = tracer_->unwinds())
            TRY(following().unwind(tracer_->object(), options_.tracer.unwind.memory, *program));
        TRY(following().walk_scripts(tracer_->object(), options_.language_view));
        tracer_->tell_codes([this](Bytes record) { (void)following().scripts().take_code(record); },
                            [this](Bytes record) { following().scripts().lost_code(record); });
        const std::vector<std::string> &workload = options_.observed.workload;
        if (!workload.empty()) following().symbols().set_owner(session_.owner());
        const int child = session_.child();
        const std::vector<std::string> &labels = options_.tracer.labels;
        if (!labels.empty()) TRY(following().labels().start(tracer_->object(), labels));
        if (!labels.empty() || (recorder_ ? recorder_->wants_watch(child) : view_->wants_watch(child)))
            if (Result<void> watched = following().watch(child); !watched)
                news_.note(format("code of processes that end early may go without names: {}", watched.error().message()));
        if (!recorder_) TRY(view_->count_in_kernel(*tracer_));
        if (!following().unwinds() && labels.empty()) return {};
        if (following().unwinds()) following().prepare(workload);
        for (int pid : options_.observed.pids) TRY(following().want(static_cast<uint32_t>(pid)));
        return following().tick();
    }

    void take(const Event &event) {
        if (event.header.what != What::exec) { // which nobody asked for
            if (enough()) return;
            ++events_;
        }
        recorder_ ? recorder_->event(event) : view_->event(event);
    }
    [[nodiscard]] bool enough() const { return most_ != 0 && events_ >= most_; }

    Result<void> loop() {
        session::RunLoop &loop = session_.loop();
        if (tracer_->poll_fd() >= 0) TRY(loop.add(tracer_->poll_fd()));
        TRY(following().add_to(loop.epoll(), 0));
        looked_ns_ = session_.armed_ns();
        for (;;) {
            if (!TRY(loop.wait(tracer_->may_sleep() ? following().wait_ms(kTickMs) : 0))) return {};
            TRY(following().tick([this] {
                tracer_->poll([this](const Event &event) { take(event); }, kAtOnce);
                following().behind(tracer_->oldest_ns());
            }));
            TRY(flush());
            if (groups_) TRY(groups_->tick(sys::monotonic_ns()));
            TRY(look());
            if (enough()) return {};
            if (TRY(loop.over())) return {};
        }
    }

    // For whom looks at counters while they grow: a person at a terminal, a scraper.
    Result<void> look() {
        SpanOutlet *outlet = options_.view.spans ? options_.view.spans->outlet : nullptr;
        const bool scraped = outlet && outlet->is_scraped();
        if ((!scraped && !counts_drawn_) || sys::monotonic_ns() - looked_ns_ < kLookNs) return {};
        const std::vector<PlaceCounts> counts = TRY(tracer_->counts());
        if (scraped) {
            uint64_t lost = 0;
            for (const PlaceCounts &place : counts) lost += place.lost();
            outlet->lost_events(lost);
        }
        if (counts_drawn_) TRY(view_->redraw(counts, sys::terminal_size(options_.terminal)));
        looked_ns_ = sys::monotonic_ns();
        return {};
    }

    [[nodiscard]] Result<Spent> spent() const {
        return spent_of(*tracer_, TRY(tracer_->counts()), most_ ? std::optional(events_) : std::nullopt);
    }

    Result<void> end_view() {
        view_->drain();
        TRY(view_->stop_counting());
        const OpenCalls open = open_calls(view_->calls());
        end_.ending = session_.end();
        const Spent spent = TRY(this->spent());
        end_.ledger = ledger_of(spent, *view_, open);
        end_.set_languages(following(), tracer_->no_languages());
        end_.set_cost(session_, tracer_->cost(), following().stats().pool_bytes, view_->advice(options_.tracer.unwind.by));
        if (groups_) TRY(groups_->finish(sys::monotonic_ns()));
        TRY(view_->finish(spent.counts, end_.ledger));
        TRY(writer_.flush());
        end_.places = places_ledger(view_->names(), merge_sites(tracer_->places(), spent.counts));
        if (const StackCounts *stacks = view_->stack_counts()) end_.counted = stacks->counted();
        warn(spent.counts);
        return {};
    }

    Result<void> end_recording() {
        recorder_->look_who_lives();
        end_.ending = session_.end();
        const Spent spent = TRY(this->spent());
        end_.ledger = sums_of(spent);
        end_.ledger.stack_ends = recorder_->stack_ends().list();
        end_.set_languages(following(), tracer_->no_languages());
        end_.set_cost(session_, tracer_->cost(), following().stats().pool_bytes, {});
        end_.warnings = recorder_->warnings();
        end_.warn_of_skipped(tracer_->cost());
        return recorder_->finish(spent, end_.recorded());
    }

    void warn(const std::vector<PlaceCounts> &counts) {
        std::vector<std::string> &out = end_.warnings;
        uint64_t no_room = 0;
        for (const PlaceCounts &place : counts) no_room += place.counts.lost;
        if (no_room && view_->stack_counts()) out.emplace_back(kNoRoomForStacks);
        if (no_room && groups_)
            out.push_back(format("there was room for {} groups, and {} events belonged to others: --keys N makes more room",
                                 render::grouped(tracer_->group_layout()->keys), render::grouped(no_room)));
        for (const std::string &warning : view_->warnings()) out.push_back(warning);
        if (options_.view.debug_info)
            for (const std::string &warning : options_.view.debug_info->warnings()) out.push_back(warning);
        end_.warn_of_skipped(tracer_->cost());
    }

    RunOptions options_;
    render::Writer &writer_;
    RunNews &news_;
    session::Session session_;
    std::unique_ptr<Tracer> tracer_; // whose maps the names' tables are put into
    std::shared_ptr<const btf::Btf> kernel_;
    RunEnd end_;
    std::optional<View> view_;         ///< or
    std::optional<Recorder> recorder_; ///< with RunOptions::record_fd
    std::optional<GroupRun> groups_;   ///< events are put into groups
    uint64_t most_, events_ = 0, start_ns_ = 0, looked_ns_ = 0;
    bool counts_drawn_ = false; ///< on a terminal, while they grow
};

} // namespace

Result<RunEnd> run_trace(RunOptions options, render::Writer &writer, RunNews &news) {
    return Run(std::move(options), writer, news).run();
}

} // namespace rawbpf::inline v0::trace
