// The controller: from options to samples, and away again without a trace.
//
//      load program --> ring --> process events --> clocks (disabled) --> [workload waits] --> armed --> ready byte --> go
//                                                                                               |
//      +----------------------------------------------------------------------------------------+
//      |   every 100 ms, or when the ring is a quarter full:
//      |       news of processes, samples, in the order of time --> places --> stacks --> deliver / count / record
//      +-- until the workload ends, the processes are gone, the time is up, or somebody says stop
//
//      clocks off --> the rest of the ring --> counters --> names --> delivery --> ledger
//
// The order at the end makes the ledger exact: switching an event off waits until no CPU runs its program any more, so after the
// ring is drained the counters are final, and each firing is in exactly one of them.
#include "programs/profile/profiler.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "programs/languages/records.h"
#include "programs/processes/following.h"
#include "programs/processes/request_labels.h"
#include "programs/profile/capture.h"
#include "programs/profile/clocks.h"
#include "programs/profile/counts.h"
#include "programs/profile/deliver.h"
#include "programs/profile/left_out.h"
#include "programs/profile/loading.h"
#include "programs/profile/off_cpu.h"
#include "programs/profile/samples.h"
#include "programs/recording/names.h"
#include "programs/session/merged_rings.h"
#include "programs/session/session.h"
#include "programs/session/stack_counting.h"
#include "runtime/base/fail.h"
#include "runtime/events/ring_reader.h"
#include "runtime/kernel/stats.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process.h"
#include "runtime/sys/runnable.h"

namespace rawbpf::inline v0 {

namespace {

using namespace processes;
using namespace profile;

constexpr int kTickMs = 100, kFirstTickMs = 5;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBeforehandNs = 300'000'000; // for tables of what runs already; the help says so
constexpr size_t kMostNodes = 1 << 20;          // of the stack tree, before it starts anew; about 20 MB
constexpr size_t kWriteAt = 64 << 10;           // bytes of capture waiting
constexpr size_t kAtOnce = 16384;               // samples that are taken before anything else is looked at

session::Observed observed(const ProfileOptions &o) {
    return {o.workload, o.as_root, o.workload_output, o.pids, o.duration_s, o.ready_fd, o.stop};
}

uint64_t rss_anon() { return sys::status_number(sys::own_pid(), "RssAnon").value_or(0) * 1024; }

class Run {
  public:
    Run(const Setup &setup, Sink &sink)
        : options_(setup.options), setup_(setup), sink_(sink), following_(options_.record_fd >= 0),
          tree_(options_.delivery == Delivery::counted && options_.record_fd < 0 ? Sharing::by_offset : Sharing::by_address),
          samples_(following_, tree_, options_.names || options_.record_fd >= 0),
          namer_(tree_, table_.modules(), following_.symbols(), {options_.lines, options_.inlined}),
          deliverer_(tree_, namer_, options_.delivery, options_.names, sink), writer_(options_.record_fd),
          counting_([this](const InternedSample *sample, uint64_t more) { take_counted(sample, more); }),
          session_(observed(options_)), clocks_(setup) {
        following_.symbols().set_debug_info(options_.debug_info);
        deliverer_.label_by(labels_.sets());
        if (options_.per_thread) deliverer_.keep_threads_apart();
        if (options_.off_cpu) deliverer_.expect_waits();
    }

    /// `called_ns`: when it was asked for.
    Result<Outcome> run(uint64_t called_ns) {
        TRY(clocks_.find_tracepoint());
        TRY(load_program());
        TRY(open_events());
        TRY(attach());
        TRY(start());
        outcome_.cost.armed_ns = session_.armed_ns() - called_ns;
        if (auto watched = loop(); !watched) {
            end_workload();
            return Unexpected(std::move(watched).error());
        }
        TRY(stop());
        outcome_.cost.cpu_ns = session_.cpu_ns();
        outcome_.cost.rss_anon_bytes = rss_anon();
        TRY(finish());
        return std::move(outcome_);
    }

  private:
    // --- Before -------------------------------------------------------------------------------------------------------------

    Result<void> load_program() {
        {
            sys::Because why("the run time of each program is counted while this is open: its cost goes into the ledger");
            if (auto stats = RunStats::enable()) stats_ = std::move(*stats); // worth no failure
        }
        Loaded loaded = TRY(load_profile(setup_, outcome_));
        object_ = std::move(loaded.object);
        if (loaded.program.unwind) TRY(following_.unwind(object_, options_.unwind_memory, *loaded.program.unwind));
        TRY(following_.walk_scripts(object_, options_.language_view));
        if (loaded.program.labels) TRY(labels_.start(object_, options_.labels));
        pids_ = object_.find_map("profile_pids");
        program_ = object_.find_program("profile");
        if (!program_) return fail(Errc::internal, "no program profile");
        reader_ = std::make_unique<RingReader>(
            TRY(open_rings(object_, loaded.program)), options_.backlog, [this](Bytes record) { count_left(record); },
            is_language_code);
        rings_.emplace(*reader_);
        return {};
    }

    // In whichever thread moves records. A code's is no sample.
    void count_left(Bytes record) {
        if (is_language_code(record))
            following_.scripts().lost_code(record);
        else
            __atomic_fetch_add(&backlog_full_, 1, __ATOMIC_RELAXED);
    }

    Result<void> open_events() {
        if (options_.ask_jvms) following_.symbols().ask_jvms();
        TRY(session_.open());
        if (!options_.workload.empty()) {
            following_.symbols().set_owner(session_.owner());
            if (options_.off_cpu) TRY(pids_->put(static_cast<uint32_t>(session_.child()), uint8_t{1}));
        }
        if (options_.names || options_.record_fd >= 0 || setup_.by_descent() || following_.unwinds()) {
            if (auto watched = watch(); watched) {
                TRY(counting_.start(object_, options_.stack_counts)); // without news of changes, a count's meaning isn't known
            } else if (setup_.by_descent()) {
                return Unexpected(in_context(std::move(watched).error(), options_.pids.empty()
                                                                             ? "following what the command starts"
                                                                             : "following what the processes start"));
            } else {
                outcome_.warnings.push_back(
                    format("processes that end early may go without names: {}", watched.error().message()));
            }
        }
        for (int pid : options_.pids) TRY(following_.want(static_cast<uint32_t>(pid)));
        following_.prepare(options_.workload);
        // The clocks' first ticks are taken of what runs in this moment; the stacks of what isn't done in time are copied.
        if (options_.workload.empty() && options_.pids.empty() && options_.cgroup.empty() && !options_.off_cpu)
            TRY(following_.want_running(kBeforehandNs));
        return {};
    }

    Result<void> watch() {
        if (!options_.workload.empty()) return following_.watch(session_.child());
        if (!setup_.by_descent()) return following_.watch(-1);
        constexpr bool kAtOnce = false; // a child's first sample comes with a copy of its stack
        return following_.watch(options_.pids, true, kAtOnce);
    }

    Result<void> attach() {
        for (size_t i = 0; i < reader_->rings(); ++i) TRY(loop_.add(reader_->wake_fd(i)));
        TRY(following_.add_to(loop_.epoll(), 0));
        return options_.off_cpu ? Result<void>() : clocks_.open(*program_); // waits begin at once: see start()
    }

    Result<void> start() {
        start_ns_ = sys::monotonic_ns();
        const RunInfo &run = outcome_.run = describe(setup_, start_ns_);
        deliverer_.set_clock({start_ns_, run.start_wall_ns});
        deliverer_.set_most_frames(session::most_frames(RAWBPF_STACK_FRAMES));
        TRY(sink_.start(run)); // who may still have to empty the capture's file
        if (options_.record_fd >= 0) {
            writer_.begin({run, start_ns_});
            TRY(writer_.flush());
        }
        if (options_.thread && (setup_.event.counts() || options_.off_cpu)) reader_->keep_up(); // a clock's ticks are no burst
        TRY(clocks_.enable());
        if (options_.off_cpu) {
            TRY(options_.off_cpu->attach(object_));
            sys::Because why("what the processes have started before; what they start from here on the program sees");
            if (setup_.by_descent() && !options_.pids.empty())
                for (int pid : sys::descendants(options_.pids)) TRY(pids_->put(static_cast<uint32_t>(pid), uint8_t{1}));
        }
        if (!options_.workload.empty()) following_.first_steps();
        return session_.go();
    }

    // --- Meanwhile ----------------------------------------------------------------------------------------------------------

    Result<void> loop() {
        for (;;) {
            (void)reader_->may_sleep(); // gives back what was read; whatever lies in a ring already can wait for the tick
            if (!TRY(loop_.wait(rings_->oldest_ns() != 0 ? 0 : following_.wait_ms(tick_ms())))) return {};
            TRY(tick());
            for (const size_t target : loop_.ended()) TRY(target_ended(target));
            if (TRY(loop_.over())) return {};
        }
    }

    /// Most processes are met right after the start. Those that were there before are looked up in /proc: soon, before they end.
    [[nodiscard]] int tick_ms() const {
        const uint64_t since = std::min<uint64_t>(sys::monotonic_ns() - start_ns_, kSecond);
        return std::clamp(static_cast<int>(since / 10'000'000), kFirstTickMs, kTickMs);
    }

    /// Its number may be given to another process while the run goes on for the sake of the others.
    Result<void> target_ended(size_t target) {
        sys::Because why("a process that has ended: whoever gets its number isn't wanted");
        if (by_news()) return {}; // the table hears of its end, and of who gets its number
        const auto pid = static_cast<uint32_t>(options_.pids[target]);
        auto erased = pids_->erase(&pid);
        if (!erased && erased.error().kind != Errc::not_found) return erased;
        return {};
    }

    Result<void> tick() {
        TRY(following_.tick([this] { (void)read(); }));
        TRY(keep_left_out());
        const uint64_t now = sys::monotonic_ns();
        counting_.lost(__atomic_load_n(&backlog_full_, __ATOMIC_RELAXED));
        TRY(counting_.tick(now, table_.remaps() + labels_.changes()));
        TRY(deliverer_.flush(now));
        if (options_.max_cpu > 0) TRY(keep_within_budget(now));
        if (writer_.waiting() >= kWriteAt) TRY(writer_.flush());
        if (tree_.nodes().size() > kMostNodes || labels_.sets().full()) TRY(start_anew());
        Progress progress;
        progress.seconds = static_cast<double>(now - start_ns_) / 1e9;
        progress.samples = deliverer_.shown();
        progress.processes = table_.sampled();
        progress.distinct_stacks = deliverer_.distinct();
        sink_.progress(progress);
        return {};
    }

    Result<void> keep_within_budget(uint64_t now) {
        uint64_t spent = sys::process_cpu_ns();
        if (stats_)
            if (auto bpf = run_cost(program_->fd.get())) spent += bpf->ns;
        return clocks_.keep_within_budget(now, spent, [this](double hz, double use) { sink_.rate_changed(hz, use); });
    }

    /// The samples there are now, but for what goes beyond kAtOnce. Returns their number.
    size_t read() {
        const size_t count = rings_->read([this](Bytes record) { take(record); }, kAtOnce);
        following_.behind(rings_->oldest_ns());
        return count;
    }

    void take(Bytes record) {
        if (following_.scripts().take_code(record)) return;
        std::optional<RawSample> sample;
        std::optional<RawWait> wait;
        if (!options_.off_cpu)
            sample = profile::parse_record(record);
        else if ((wait = options_.off_cpu->parse(record)))
            sample = wait->sample;
        if (!sample) {
            ++malformed_;
            return;
        }
        const bool only_begun = wait && wait->waited_ns == 0; // the wait itself is counted
        following_.apply(sample->head.t_ns);
        if (!clocks_.on_wanted_cpu(sample->head.cpu)) {
            ++filtered_here_;
            return;
        }
        if (!following_.wanted(sample->head.pid, sample->head.t_ns)) {
            if (only_begun) return;
            ++filtered_here_;
            leave_out(sample->head.pid);
            counting_.met(sample->key, nullptr);
            return;
        }
        samples_.walk(*sample);
        if (only_begun) return samples_.keep_begun(*sample);
        if (wait) samples_.take_begun(*sample, sample->taken_ns = wait->left_ns);
        InternedSample interned = samples_.intern(*sample);
        interned.labels = labels_.of(sample->head.pid, sample->labels);
        interned.weight = clocks_.weight(sample->head.cpu, sample->head.t_ns);
        if (wait) interned.t_ns = wait->left_ns, interned.weight = wait->waited_ns;
        counting_.met(sample->key, &interned);
        deliverer_.add(interned);
        if (options_.record_fd >= 0) writer_.sample(interned, tree_, table_.modules(), labels_.sets());
    }

    /// So many samples like one that was taken.
    void take_counted(const InternedSample *sample, uint64_t more) {
        if (!sample) {
            filtered_here_ += more;
            return;
        }
        deliverer_.add(*sample, more);
        following_.seen_again(tree_, sample->user, sample->pid, sys::monotonic_ns());
    }

    /// Whether whose a sample is is known by news of forks, and all are sent but those left out.
    [[nodiscard]] bool by_news() const { return setup_.by_descent() && !options_.off_cpu; }
    /// The child itself isn't wanted before its exec, but soon.
    [[nodiscard]] bool is_family(uint32_t pid, uint64_t now_ns) const {
        return (session_.child() > 0 && pid == static_cast<uint32_t>(session_.child())) || table_.wanted(pid, now_ns);
    }
    Result<void> keep_left_out() {
        if (!by_news()) return {};
        const uint64_t now = sys::monotonic_ns();
        return left_out_.update(*pids_, [&](uint32_t pid) { return is_family(pid, now); });
    }
    void leave_out(uint32_t pid) {
        if (by_news() && !is_family(pid, sys::monotonic_ns())) left_out_.met(*pids_, pid);
    }

    void record_names() { recording::write_names(writer_, tree_, namer_, table_.modules(), following_.symbols()); }

    Result<void> start_anew() {
        if (options_.record_fd >= 0) {
            record_names();
            writer_.reset();
            TRY(writer_.flush());
        }
        TRY(counting_.start_anew()); // its samples are numbers of the tree
        TRY(deliverer_.finish());
        tree_.clear();
        labels_.sets().clear();
        return {};
    }

    // --- Afterwards ---------------------------------------------------------------------------------------------------------

    Result<void> stop() {
        TRY(clocks_.disable());
        outcome_.elapsed_ns = sys::monotonic_ns() - start_ns_;
        if (std::string slowed = clocks_.slowed(outcome_.elapsed_ns); !slowed.empty())
            outcome_.warnings.push_back(std::move(slowed));
        if (options_.off_cpu) options_.off_cpu->detach();
        reader_->stop();
        TRY(read_rest());
        if (options_.off_cpu)
            TRY(options_.off_cpu->rest(object_, start_ns_ + outcome_.elapsed_ns, [this](Bytes record) { take(record); }));
        TRY(counting_.finish());
        end_workload();
        TRY(read_ledger());
        read_cost();
        if (following_.events_lost() > 0)
            outcome_.warnings.push_back(format("{} process events were lost: some names may be missing{}",
                                               following_.events_lost(),
                                               setup_.by_descent() ? ", and samples of short-lived children" : ""));
        return {};
    }

    Result<void> read_rest() {
        const int stops = options_.stop ? *options_.stop : 0;
        for (size_t count = 1; count > 0;) {
            following_.read_rest([&] { count = read(); });
            TRY(deliverer_.flush(sys::monotonic_ns()));
            if (options_.stop && *options_.stop > stops) left_out_rest_ += rings_->leave_out(); // asked a second time
        }
        return {};
    }

    /// A workload outlives the measurement only when it doesn't listen.
    void end_workload() {
        if (std::string how = session_.end(); session_.child() >= 0) outcome_.workload_status = std::move(how);
    }

    Result<void> read_ledger() {
        Ledger &ledger = outcome_.ledger;
        sys::Because why("what each CPU counted: fired, filtered, lost; with the samples shown it has to add up");
        ledger.filtered = filtered_here_;
        ledger.shown = deliverer_.shown();
        if (options_.off_cpu)
            TRY(options_.off_cpu->account(object_, ledger));
        else
            TRY(read_counts(object_, ledger));
        const std::pair<const char *, uint64_t> rare[] = {{"malformed", malformed_},
                                                          {"backlog_full", __atomic_load_n(&backlog_full_, __ATOMIC_RELAXED)},
                                                          {"stopped_by_signal", left_out_rest_},
                                                          {"unknown_stack", counting_.unknown()}};
        for (const auto &[reason, n] : rare)
            if (n > 0) ledger.lost.emplace_back(reason, n);
        return {};
    }

    void read_cost() {
        Cost &cost = outcome_.cost;
        if (stats_) {
            if (auto spent = run_cost(program_->fd.get())) {
                cost.bpf_runs = spent->runs;
                cost.bpf_ns = spent->ns;
            }
        }
        cost.ring_bytes = following_.ring_bytes() + reader_->ring_bytes();
        cost.table_bytes = following_.stats().pool_bytes;
        cost.counted = counting_.counted();
        if (!counting_.on()) return;
        cost.counting = format("{} samples were counted in the kernel", cost.counted);
        if (counting_.pauses() > 0)
            append(cost.counting, "; {} times it stopped for some seconds, as most stacks were new", counting_.pauses());
    }

    Result<void> finish() {
        clocks_.close();
        if (options_.record_fd >= 0) record_names();
        TRY(deliverer_.finish());
        outcome_.ledger.degraded = deliverer_.degraded();
        outcome_.ledger.stack_ends = deliverer_.stack_ends();
        outcome_.ledger.languages = following_.scripts().counts();
        for (std::string &note : following_.scripts().learnt()) outcome_.languages.push_back(std::move(note));
        for (std::string &java : following_.java().learnt()) outcome_.languages.push_back(std::move(java));
        for (std::string &js : following_.js().learnt()) outcome_.languages.push_back(std::move(js));
        for (const std::string &found : labels_.found()) outcome_.languages.push_back(found);
        outcome_.ended_early = deliverer_.early_ends().list();
        outcome_.advice = deliverer_.early_ends().advice(table_.modules(), remedy(options_));
        for (std::string &warning : following_.warnings()) outcome_.warnings.push_back(std::move(warning));
        outcome_.unread = following_.symbols().unread();
        if (options_.debug_info)
            for (std::string &warning : options_.debug_info->warnings()) outcome_.warnings.push_back(std::move(warning));
        if (options_.record_fd >= 0) {
            writer_.end(outcome_);
            TRY(writer_.flush());
        }
        return {};
    }

    const ProfileOptions &options_;
    const Setup &setup_;
    Sink &sink_;
    Outcome outcome_;

    LoadedObject object_; // what follows walks by its maps
    Following following_;
    ProcessTable &table_ = following_.table();
    RequestLabels &labels_ = following_.labels();
    StackTree tree_;
    Samples samples_;
    Namer namer_;
    Deliverer deliverer_;
    CaptureWriter writer_;
    session::StackCounts counting_;
    LeftOut left_out_;

    std::optional<RunStats> stats_;
    Map *pids_ = nullptr;
    Program *program_ = nullptr;
    std::unique_ptr<RingReader> reader_;
    std::optional<session::MergedRings> rings_;
    session::Session session_;
    session::RunLoop &loop_ = session_.loop();
    Clocks clocks_;
    uint64_t filtered_here_ = 0; // samples that only we could judge: those of strangers who aren't in the map yet, of other CPUs
    uint64_t backlog_full_ = 0, left_out_rest_ = 0, malformed_ = 0;
    uint64_t start_ns_ = 0;
};

} // namespace

Result<Outcome> run_profile(const ProfileOptions &options, Sink &sink) {
    const uint64_t called_ns = sys::monotonic_ns();
    const Setup setup = TRY(set_up(options));
    return Run(setup, sink).run(called_ns);
}

} // namespace rawbpf::inline v0
