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
//
// Who is sampled: there is always one clock a CPU, and what isn't wanted is filtered and counted. A clock on a thread, or one
// inherited by what it starts, would look simpler, but each starts with a whole period to wait: a thousand threads that work for
// a millisecond each would never be seen. With --pid --no-children the program looks for the process in a map. For a workload, or
// --pid and what it starts, it can't: when we hear of a child it may be gone. So all processes are sent but those in a map, and
// the kernel's news of forks, merged with the samples by time, say whose a sample is; a process that isn't of the family goes
// into the map when it is first met, and its samples are dropped in the kernel from then on.
#include "programs/profile/profiler.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>

#include "programs/processes/live_symbols.h"
#include "programs/processes/process_events.h"
#include "programs/processes/unwinding.h"
#include "programs/profile/begun_waits.h"
#include "programs/profile/capture.h"
#include "programs/profile/cpu_budget.h"
#include "programs/profile/deliver.h"
#include "programs/profile/event.h"
#include "programs/profile/off_cpu.h"
#include "programs/profile/program.h"
#include "programs/profile/run_info.h"
#include "programs/profile/sample.h"
#include "programs/profile/stack_counting.h"
#include "programs/unwind/kernel_members.h"
#include "programs/unwind/probes_about.h"
#include "runtime/events/ring_reader.h"
#include "runtime/kernel/loader.h"
#include "runtime/kernel/stats.h"
#include "runtime/link/perf_event.h"
#include "runtime/sys/choke.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/epoll.h"
#include "runtime/sys/file.h"
#include "runtime/sys/machine.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/process.h"
#include "runtime/sys/random.h"
#include "runtime/sys/runnable.h"
#include "runtime/sys/urgent.h"

namespace rawbpf::inline v0 {

namespace {

using namespace processes;
using namespace profile;

constexpr int kTickMs = 100, kFirstTickMs = 5;
constexpr uint64_t kTarget = 1; // what epoll says of the first of the processes given, then one more each
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kInFlightNs = 1'000'000; // a record may become visible this much later than its time
constexpr size_t kTypicalRecord = 600;      // bytes: 70 frames
constexpr size_t kLeastRing = 256 << 10, kMostRing = 64 << 20;
// While tables are made nobody reads the ring. For a second of samples with copies of their stacks there is room, and for as much
// again that is kept free of copies; of a small machine's memory it is a little part.
constexpr size_t kCopiedRecord = 18 << 10, kMostForCopies = 16 << 20, kShareForCopies = 64;
// The same share for the slots of threads that wait. Of a command nobody knows how many it will have.
constexpr uint64_t kWaitBytes = 2800, kLeastThreads = 4096, kUsualThreads = 16384, kMostThreads = 1 << 18;
constexpr uint64_t kBeforehandNs = 300'000'000; // for tables of what runs already; the help says so
constexpr size_t kMostNodes = 1 << 20;          // of the stack tree, before it starts anew; about 20 MB
constexpr size_t kWriteAt = 64 << 10;           // bytes of capture waiting
constexpr int kRounds = 8;                      // of making tables, before anything else is done
constexpr size_t kAtOnce = 16384;               // samples that are taken before anything else is looked at
// Samples, for the milliseconds that counting takes to prepare: the kernel's types are searched.
constexpr double kWorthCounting = 2000;
constexpr uint64_t kLeastTickNs = 1'000'000;
constexpr uint32_t kMostFamily = 4096;  // processes that those given have started before, with these
constexpr uint32_t kMostLeftOut = 1024; // processes in the map of those to leave out, before it starts anew
constexpr uint64_t kTypicalRate = 2000; // events a second on a CPU, for the size of the ring

/// Threads that wait and live, for --off-cpu: each takes a slot with its stacks.
uint32_t waiting_threads() {
    const uint64_t room = sys::memory_bytes() / kShareForCopies / kWaitBytes;
    return static_cast<uint32_t>(std::clamp<uint64_t>(std::max<uint64_t>(kUsualThreads, 2 * sys::threads_of_machine()),
                                                      kLeastThreads, std::clamp<uint64_t>(room, kLeastThreads, kMostThreads)));
}

/// A power of two that holds two seconds of samples; with copies of stacks one second of these and as much again, as far as the
/// machine's memory allows.
size_t ring_size(const ProfileOptions &options, const Event &event, size_t cpus, bool copies) {
    if (options.ring_bytes) return options.ring_bytes;
    const size_t samples = cpus * (event.counts() ? kTypicalRate : options.frequency);
    const size_t wanted = samples * kTypicalRecord * 2;
    size_t size = std::max(kLeastRing, sys::page_size());
    while (size < wanted && size < kMostRing) size *= 2;
    if (!copies) return size;
    const size_t for_copies = std::min<size_t>(kMostForCopies, sys::memory_bytes() / kShareForCopies);
    while (size < samples * kCopiedRecord * 2 && size * 2 <= for_copies) size *= 2;
    return size;
}

uint64_t rss_anon() { return sys::status_number(sys::own_pid(), "RssAnon").value_or(0) * 1024; }

Result<void> check(const ProfileOptions &options, const Event &event, const std::vector<int> &online) {
    if (!options.workload.empty() && !options.pids.empty())
        return fail(Errc::invalid_argument, "either processes or a command can be profiled, not both");
    if (!options.kernel_stacks && !options.user_stacks)
        return fail(Errc::invalid_argument, "neither kernel nor user stacks are wanted: nothing would be left");
    if (options.period > INT32_MAX) return fail(Errc::invalid_argument, "one sample in {} events", options.period);
    if (event.kind == EventKind::clock && options.period != 0)
        return fail(Errc::invalid_argument, "{} ticks by frequency, not each so many-th time", event.name);
    if (options.max_cpu < 0 || !std::isfinite(options.max_cpu) ||
        (options.max_cpu > 0 && (event.counts() || options.period != 0)))
        return fail(Errc::invalid_argument, "a share of {} of a CPU: it is a clock whose rate can be lowered, not {}",
                    options.max_cpu, event.name);
    if (options.frequency == 0) return fail(Errc::invalid_argument, "a frequency of 0 Hz takes no samples");
    if (options.off_cpu && options.record_fd >= 0) return fail(Errc::invalid_argument, "a capture has samples, and no waits");
    if (options.off_cpu && (event.kind != EventKind::clock || options.max_cpu > 0))
        return fail(Errc::invalid_argument, "waits are no samples of {}, and have no rate", event.name);
    if (options.duration_s < 0 || !std::isfinite(options.duration_s))
        return fail(Errc::invalid_argument, "a duration of {} s", options.duration_s);
    for (int cpu : options.cpus) {
        if (std::find(online.begin(), online.end(), cpu) == online.end())
            return fail(Errc::invalid_argument, "CPU {} isn't online", cpu);
    }
    for (int pid : options.pids) {
        const auto process = pid > 0 ? sys::status_number(pid, "Tgid") : std::nullopt;
        if (!process) return fail(Errc::not_found, "there is no process {}", pid);
        if (*process != static_cast<uint64_t>(pid))
            return fail(Errc::not_found, "there is no process {}: that is a thread of process {}", pid, *process);
    }
    return {};
}

class Run {
  public:
    Run(const ProfileOptions &options, Sink &sink)
        : options_(options), sink_(sink), symbols_(options.record_fd >= 0), table_(symbols_), unwinding_(table_),
          tree_(options.delivery == Delivery::counted && options.record_fd < 0 ? Sharing::by_offset : Sharing::by_address),
          namer_(tree_, table_.modules(), symbols_, {options.lines, options.inlined}),
          deliverer_(tree_, namer_, options.delivery, options.names, sink), writer_(options.record_fd),
          counting_([this](const InternedSample *sample, uint64_t more) { take_counted(sample, more); }) {
        symbols_.set_debug_info(options.debug_info);
        if (options.per_thread) deliverer_.keep_threads_apart();
        if (options.off_cpu) deliverer_.expect_waits();
    }

    Result<Outcome> run() {
        called_ns_ = sys::monotonic_ns();
        cpu_before_ns_ = sys::process_cpu_ns();
        online_ = TRY(online_cpus());
        event_ = TRY(parse_event(options_.event));
        TRY(check(options_, event_, online_));
        period_ = event_.counts() ? std::max<uint64_t>(options_.period, 1) : options_.period;
        if (event_.kind == EventKind::tracepoint) tracepoint_ = TRY(TracepointLink::open(event_.tracepoint()));
        TRY(load_program());
        TRY(open_events());
        TRY(attach());
        TRY(start());
        if (auto watched = loop(); !watched) {
            end_workload();
            return Unexpected(std::move(watched).error());
        }
        TRY(stop());
        TRY(finish());
        return std::move(outcome_);
    }

  private:
    // --- Before -------------------------------------------------------------------------------------------------------------

    Result<void> load_program() {
        ProgramOptions program;
        ProfileConfig &config = program.config;
        config.want_kernel = options_.kernel_stacks;
        config.want_user = options_.user_stacks;
        config.skip_idle = !options_.idle;
        if (by_descent())
            config.filter_pid = PROFILE_PIDS_LEFT_OUT;
        else if (!options_.pids.empty())
            config.filter_pid = PROFILE_PIDS_WANTED;
        std::memcpy(config.comm, options_.comm.data(), std::min(options_.comm.size(), sizeof config.comm - 1));
        config.filter_cgroup = !options_.cgroup.empty();
        config.tracepoint = event_.kind == EventKind::tracepoint;
        if (event_.counts()) config.every = config.tracepoint ? static_cast<uint32_t>(period_) : 1;
        size_ring(program);
        program.cpus = static_cast<uint32_t>(TRY(possible_cpu_count()));
        if (options_.off_cpu) program.threads = waiting_threads();
        program.pids = static_cast<uint32_t>(std::max<size_t>(1, options_.pids.size()));
        if (by_descent()) program.pids = options_.off_cpu ? kMostFamily : kMostLeftOut;
        if (const auto ns = sys::own_pid_namespace()) {
            config.pidns_dev = ns->device;
            config.pidns_ino = ns->inode;
        }
        Fd cgroup;
        if (config.filter_cgroup) cgroup = TRY_IN(sys::open(options_.cgroup, O_RDONLY | O_DIRECTORY), "the cgroup to profile");

        {
            sys::Because why("the run time of each program is counted while this is open: its cost goes into the ledger");
            if (auto stats = RunStats::enable()) stats_ = std::move(*stats); // worth no failure
        }
        TRY(load_object(program));
        const auto map = [&](std::string_view name) -> Result<Map *> {
            if (Map *found = object_.find_map(name)) return found;
            return fail(Errc::internal, "the profile program has no map {}", name);
        };
        if (config.filter_pid != PROFILE_PIDS_ANY) pids_ = TRY(map("profile_pids"));
        if (!by_descent() || options_.off_cpu)
            for (int pid : options_.pids) TRY(pids_->put(static_cast<uint32_t>(pid), uint8_t{1}));
        if (cgroup) {
            const uint32_t slot = 0;
            const uint32_t fd = static_cast<uint32_t>(cgroup.get());
            TRY_IN(TRY(map("profile_cgroup"))->update(&slot, &fd), "{} (a cgroup v2 directory is needed)", options_.cgroup);
        }
        counts_ = TRY(map("profile_counts"));
        program_ = object_.find_program("profile");
        if (!program_) return fail(Errc::internal, "no program profile");
        sys::Because why(
            "the ring in our memory: our position, the kernel's, and the records, twice in a row so that none is torn");
        std::vector<RingBuffer> rings;
        for (uint32_t i = 0; i < std::min<uint32_t>(program.cpus, PROFILE_RINGS); ++i) {
            const Map *ring_map = TRY(map(format("profile_ring_{}", i)));
            rings.push_back(TRY(RingBuffer::open(ring_map->fd(), ring_map->max_entries())));
        }
        waiting_.resize(rings.size());
        reader_ = std::make_unique<RingReader>(std::move(rings), options_.backlog,
                                               [this](Bytes) { __atomic_fetch_add(&backlog_full_, 1, __ATOMIC_RELAXED); });
        return {};
    }

    void size_ring(ProgramOptions &program) const {
        const size_t cpus = options_.cpus.empty() ? online_.size() : options_.cpus.size();
        // Waits come faster than ticks: a thousand threads that sleep a millisecond each are as many bytes as copies of stacks.
        const bool copies = (program.unwind && program.unwind->copies) || options_.off_cpu;
        program.ring_bytes = static_cast<uint32_t>(ring_size(options_, event_, cpus, copies));
    }

    /// Whether a sample is wanted depends on whose child its process is: a clock's program can't tell. See above.
    [[nodiscard]] bool by_descent() const { return !options_.workload.empty() || (!options_.pids.empty() && options_.children); }

    /// Loads the program. Counting in the kernel is worth no failure: without it all samples are sent.
    Result<LoadedObject> load_as(ProgramOptions &program) {
        auto attempt = [&]() -> Result<LoadedObject> { return rawbpf::load(TRY(spec(program))); };
        auto loaded = attempt();
        if (loaded || !program.counting) return loaded;
        program.counting.reset();
        auto without = attempt();
        if (without) outcome_.cost.counting = format("stacks are not counted in the kernel: {}", loaded.error().message());
        return without;
    }

    /// Whether equal stacks are to be counted in the kernel: the results know only counts, and nothing else wants each sample.
    void choose_counting(ProgramOptions &program) {
        if (options_.delivery != Delivery::counted || options_.record_fd >= 0 || options_.stack_counts == 0) return;
        if (options_.off_cpu) return;
        if (period_ != 0 || options_.max_cpu > 0 || options_.per_thread) {
            // A count says neither a thread nor at which of several rates its samples came, and a tracepoint's hits on CPUs that
            // aren't wanted are for us to drop.
            outcome_.cost.counting =
                "stacks are not counted in the kernel: of events, threads and a rate that changes all samples are sent";
            return;
        }
        if (options_.bpf == BpfSource::clang) {
            outcome_.cost.counting = "stacks are not counted in the kernel: only the DSL's program can";
            return;
        }
        if (const auto why = why_not_counted()) {
            outcome_.cost.counting = format("stacks are not counted in the kernel: that {}", *why);
            return;
        }
        const double cpus = static_cast<double>(options_.cpus.empty() ? online_.size() : options_.cpus.size());
        const double most = options_.duration_s * static_cast<double>(options_.frequency) * cpus;
        if (options_.duration_s > 0 && most < kWorthCounting) {
            outcome_.cost.counting = "stacks are not counted in the kernel: so few samples are as quickly sent";
            return;
        }
        StackCountingOptions counting;
        counting.stacks = options_.stack_counts;
        if (!sys::random_bytes(std::as_writable_bytes(std::span(&counting.seed, 1)))) return; // the keys would be guessable
        program.counting = counting;
    }

    /// Whether stacks may lead to what the kernel puts into processes for probes: a page of probed instructions, and in the place
    /// of return addresses its own. What walks on from there takes the kernel's BTF, which costs as much as half of all else that
    /// is looked up for a start. So it is asked whether anybody has probes, and of processes given whether they have that page; a
    /// command's process has none yet.
    [[nodiscard]] bool any_probed(const ProgramOptions &program) const {
        if (options_.off_cpu || program.counting) return true; // such programs take the BTF anyway
        if (!options_.workload.empty()) return false;
        if (options_.pids.empty()) return probes_may_be_about();
        sys::Because why("is it probed? Then its stacks begin in the kernel's page of probed instructions, or lead there");
        return std::any_of(options_.pids.begin(), options_.pids.end(), [](int pid) {
            const Result<symbols::ProcessMaps> maps = symbols::read_maps(pid);
            return maps && std::any_of(maps->regions.begin(), maps->regions.end(),
                                       [](const symbols::Region &region) { return region.path == "[uprobes]"; });
        });
    }

    /// What was read for it, which whoever loads the program would have to read again.
    static std::shared_ptr<const btf::Btf> go_through_probes(UnwindProgramOptions &walk) {
        std::shared_ptr<const btf::Btf> kernel = kernel_btf().value_or(nullptr);
        walk.return_probes = kernel && has_return_instances(*kernel);
        walk.probed_code = kernel && has_probed_instructions(*kernel);
        return kernel;
    }
    /// Whether that makes a difference.
    static bool leave_probes_out(UnwindProgramOptions &walk) {
        const bool either = walk.return_probes || walk.probed_code;
        walk.return_probes = walk.probed_code = false;
        return either;
    }

    /// With unwinding where it is wanted and the kernel takes it. What it lacks is seen by trying.
    Result<void> load_object(ProgramOptions &program) {
        choose_counting(program);
        const bool by_tables = options_.unwind != UnwindBy::fp && options_.user_stacks &&
                               (options_.unwind == UnwindBy::tables || options_.bpf != BpfSource::clang);
        if (by_tables) {
            sys::Because why("user stacks are walked by unwind tables, not by frame pointers");
            const UnwindChoice choice{options_.unwind, options_.unwind_memory, options_.depth};
            std::string note;
            program.unwind = unwind_options(choice, note);
            if (program.unwind) {
                // Of events too many may come before the tables are there, as all of a process's first faults.
                program.unwind->copies = !event_.counts();
                size_ring(program);
                std::shared_ptr<const btf::Btf> kernel;
                if (any_probed(program)) kernel = go_through_probes(*program.unwind);
                auto loaded = load_as(program);
                if (!loaded && leave_probes_out(*program.unwind)) {
                    const Error refused = std::move(loaded).error();
                    loaded = load_as(program);
                    if (loaded)
                        outcome_.warnings.push_back(format("stacks end where somebody's probes have taken return addresses "
                                                           "([uprobes]): {}",
                                                           refused.message()));
                }
                if (loaded) {
                    object_ = std::move(*loaded);
                    return unwinding_.start(object_, options_.unwind_memory, *program.unwind);
                }
                if (!goes_without(choice, loaded.error(), note))
                    return Unexpected(in_context(std::move(loaded).error(), "unwinding without frame pointers"));
                program.unwind.reset();
                size_ring(program);
            }
            outcome_.warnings.push_back(std::move(note));
        }
        object_ = TRY(load_as(program));
        return {};
    }

    Result<ObjectSpec> spec(const ProgramOptions &program) const {
        return options_.off_cpu ? options_.off_cpu->spec(program) : program_spec(options_.bpf, program);
    }

    Result<void> open_events() {
        if (!options_.workload.empty()) {
            std::optional<sys::User> user;
            if (!options_.as_root) user = TRY(sys::invoking_user());
            symbols_.set_owner(user ? user->uid : sys::effective_uid());
            child_ = TRY(sys::Child::spawn(options_.workload, user));
            table_.want(static_cast<uint32_t>(child_.pid()));
            if (options_.off_cpu) TRY(pids_->put(static_cast<uint32_t>(child_.pid()), uint8_t{1}));
        }
        sys::raise_open_files(); // three descriptors a CPU; the workload has been forked, so it keeps its own limit
        if (options_.names || options_.record_fd >= 0 || by_descent() || unwinding_.on()) {
            ProcessEvents::Options watch;
            watch.follow = options_.workload.empty() ? -1 : child_.pid();
            watch.at_once = watch.follow >= 0 && unwinding_.on();
            if (auto opened = events_.open(watch); opened) {
                table_.all_changes_are_told();
                TRY(counting_.start(object_, options_.stack_counts)); // without news of changes, a count's meaning isn't known
            } else if (by_descent()) {
                return Unexpected(in_context(std::move(opened).error(), options_.pids.empty()
                                                                            ? "following what the command starts"
                                                                            : "following what the processes start"));
            } else {
                outcome_.warnings.push_back(
                    format("processes that end early may go without names: {}", opened.error().message()));
            }
        }
        if (by_descent() && !options_.pids.empty()) want_family(table_, options_.pids, true);
        for (int pid : options_.pids) {
            table_.look_at(static_cast<uint32_t>(pid), sys::monotonic_ns());
            TRY(unwinding_.want(static_cast<uint32_t>(pid), sys::monotonic_ns()));
        }
        unwinding_.prepare(options_.workload);
        if (options_.workload.empty() && options_.pids.empty() && options_.cgroup.empty() && !options_.off_cpu &&
            unwinding_.on()) {
            TRY(make_tables_of_running());
        }
        return {};
    }

    /// Of a whole machine: the clocks' first ticks are taken of what runs in this moment. Its tables, unlike those of what is
    /// sampled later, are made when nobody waits for the ring to be read; and a compiler's takes as long as several ticks, longer
    /// where compilers have all CPUs. What isn't done in time is done after the start, and its stacks are copied until then.
    Result<void> make_tables_of_running() {
        const sys::Urgent urgent;
        const uint64_t until_ns = sys::monotonic_ns() + kBeforehandNs;
        for (const int pid : sys::runnable_processes(sys::monotonic_ns() + kBeforehandNs / 3))
            table_.follow(static_cast<uint32_t>(pid), sys::monotonic_ns());
        while (!TRY(unwinding_.update(sys::monotonic_ns())) && sys::monotonic_ns() < until_ns) {
        }
        return {};
    }

    Result<void> attach() {
        for (int pid : options_.pids) targets_.push_back(TRY_IN(sys::pidfd_open(pid), "it has just ended"));
        if (options_.off_cpu) return {}; // begins at once: see start()
        sys::Because why("what runs the program");
        for (int cpu : options_.cpus.empty() ? online_ : options_.cpus) {
            if (tracepoint_) break; // that is attached when all else is ready, for it doesn't wait
            SamplingEvent event;
            event.hardware = event_.kind == EventKind::cycles;
            event.frequency = options_.frequency;
            event.period = period_;
            event.software = event_.config;
            event.cpu = cpu;
            links_.push_back(TRY(PerfEventLink::open(event, program_->fd.get())));
            clock_cpus_.push_back(static_cast<uint32_t>(cpu));
        }
        return {};
    }

    Result<void> start() {
        epoll_ = TRY(sys::epoll_create());
        if (unwinding_.on()) pause_ = TRY(sys::epoll_create());
        // Edge-triggered: a ring has something to read nearly always; what is wanted is the wake-up of one that fills.
        for (size_t i = 0; i < reader_->rings(); ++i)
            TRY(sys::epoll_add(epoll_.get(), reader_->wake_fd(i), EPOLLIN | EPOLLET, 0));
        for (const SidebandRing &ring : events_.rings()) TRY(sys::epoll_add(epoll_.get(), ring.poll_fd(), EPOLLIN | EPOLLET, 0));
        if (child_.pidfd() >= 0) TRY(sys::epoll_add(epoll_.get(), child_.pidfd(), EPOLLIN, 0));
        for (size_t i = 0; i < targets_.size(); ++i)
            TRY(sys::epoll_add(epoll_.get(), targets_[i].get(), EPOLLIN | EPOLLET, kTarget + i));

        start_ns_ = sys::monotonic_ns();
        RunInfo &run = outcome_.run;
        run = profile::describe_run(options_.command, options_.version, online_.size(), start_ns_);
        run.event = options_.off_cpu ? kWaits : std::string_view(event_.name);
        run.period = period_;
        if (period_ == 0 && !options_.off_cpu) run.frequency = static_cast<double>(options_.frequency);
        deliverer_.set_clock({start_ns_, run.start_wall_ns});
        // Lower than usual, it is where stacks are cut. (Higher makes no difference: our records end at 127.)
        const std::string frames = sys::first_line("/proc/sys/kernel/perf_event_max_stack");
        if (const int most = std::atoi(frames.c_str()); most > 0 && most < PROFILE_MAX_FRAMES) deliverer_.set_most_frames(most);
        TRY(sink_.start(run)); // who may still have to empty the capture's file
        if (options_.record_fd >= 0) {
            writer_.begin({run, start_ns_});
            TRY(writer_.flush());
        }
        if (options_.max_cpu > 0) {
            uint32_t slowest = 1; // not below 1 Hz
            while (slowest * 2 <= std::min<uint64_t>(kMostWeight, options_.frequency)) slowest *= 2;
            budget_.emplace(options_.max_cpu, slowest);
        }
        if (options_.thread && (event_.counts() || options_.off_cpu)) reader_->keep_up(); // a clock's ticks are no burst
        for (const PerfEventLink &link : links_) TRY(link.enable());
        if (tracepoint_) TRY(tracepoint_->attach(program_->fd.get()));
        if (options_.off_cpu) {
            TRY(options_.off_cpu->attach(object_));
            sys::Because why("what the processes have started before; what they start from here on the program sees");
            if (by_descent() && !options_.pids.empty())
                for (int pid : sys::descendants(options_.pids)) TRY(pids_->put(static_cast<uint32_t>(pid), uint8_t{1}));
        }
        outcome_.cost.armed_ns = sys::monotonic_ns() - called_ns_;
        if (options_.ready_fd >= 0)
            TRY_IN(sys::write_all(options_.ready_fd, "", 1), "telling descriptor {} to be ready", options_.ready_fd);
        if (!options_.workload.empty()) {
            if (unwinding_.on()) urgent_.emplace(); // until its mappings are known, its samples go by frame pointers
            TRY_IN(child_.start(), "{}", options_.workload[0]);
        }
        return {};
    }

    // --- Meanwhile ----------------------------------------------------------------------------------------------------------

    [[nodiscard]] bool told_to_stop() const { return options_.stop && *options_.stop != 0; }

    Result<void> loop() {
        const uint64_t duration = static_cast<uint64_t>(options_.duration_s * 1e9);
        std::vector<epoll_event> ready(16);
        for (;;) {
            const uint64_t now = sys::monotonic_ns();
            // Most processes are met right after the start. Those that were there before are looked up in /proc: soon, lest they
            // end.
            int wait_ms =
                std::clamp(static_cast<int>(std::min<uint64_t>(now - start_ns_, kSecond) / 10'000'000), kFirstTickMs, kTickMs);
            if (pause_ && (events_.waiting() || unwinding_.waiting()))
                wait_ms = 1; // too fresh a moment ago, and whom it is about runs on
            if (duration != 0) {
                if (now - start_ns_ >= duration) return {};
                wait_ms = std::min<int>(wait_ms, static_cast<int>((start_ns_ + duration - now) / 1'000'000) + 1);
            }
            if (told_to_stop()) return {};
            if (pause_ && now - ticked_ns_ < kLeastTickNs) { // a storm of processes wakes us with each of their mappings
                std::vector<epoll_event> none(1);
                (void)TRY(sys::epoll_wait(pause_.get(), none, 1));
            }
            (void)reader_->may_sleep(); // gives back what was read; whatever lies in a ring already can wait for the tick
            const size_t count = TRY(sys::epoll_wait(epoll_.get(), ready, oldest_ns() != 0 ? 0 : wait_ms));
            TRY(tick());
            for (size_t i = 0; i < count; ++i)
                if (ready[i].data.u64 >= kTarget) TRY(target_ended(ready[i].data.u64 - kTarget));
            if (child_.pid() >= 0 && TRY(child_.poll())) return {};
            if (!targets_.empty() && ended_targets_ >= targets_.size()) return {};
        }
    }

    /// Its number may be given to another process while the run goes on for the sake of the others.
    Result<void> target_ended(size_t target) {
        ++ended_targets_;
        sys::Because why("a process that has ended: whoever gets its number isn't wanted");
        if (by_descent() && !options_.off_cpu) return {}; // the table hears of its end, and of who gets its number
        const auto pid = static_cast<uint32_t>(options_.pids[target]);
        auto erased = pids_->erase(&pid);
        if (!erased && erased.error().kind != Errc::not_found) return erased;
        return {};
    }

    Result<void> tick() {
        for (int round = 0; round < kRounds; ++round) {
            drain();
            ticked_ns_ = sys::monotonic_ns();
            if (TRY(unwinding_.update(ticked_ns_))) break;
        }
        if (urgent_ && ticked_ns_ - start_ns_ > kFirstStepsNs) urgent_.reset();
        TRY(keep_left_out());
        const uint64_t now = sys::monotonic_ns();
        if (counting_.on()) {
            if (const uint64_t remaps = table_.remaps(); remaps != std::exchange(remaps_, remaps)) TRY(counting_.start_anew());
            TRY(counting_.tick(now));
        }
        if (now - swept_ns_ >= kSecond) {
            swept_ns_ = now;
            table_.sweep();
        }
        TRY(deliverer_.flush(now));
        if (budget_) TRY(keep_within_budget(now));
        if (writer_.waiting() >= kWriteAt) TRY(writer_.flush());
        if (tree_.nodes().size() > kMostNodes) TRY(start_anew());
        Progress progress;
        progress.seconds = static_cast<double>(now - start_ns_) / 1e9;
        progress.samples = deliverer_.shown();
        progress.processes = table_.sampled();
        progress.distinct_stacks = deliverer_.distinct();
        sink_.progress(progress);
        return {};
    }

    /// Another rate for all clocks, when the last seconds cost too much, or little for long. A clock that is given another period
    /// begins it anew, so the first sample after the change stands for the new one.
    Result<void> keep_within_budget(uint64_t now) {
        uint64_t spent = sys::process_cpu_ns();
        if (stats_)
            if (auto bpf = run_cost(program_->fd.get())) spent += bpf->ns;
        spent_ns_ = std::max(spent, spent_ns_);
        const uint32_t slower = budget_->update(now, spent_ns_);
        if (slower == slower_) return {};
        slower_ = slower;
        // The kernel has made a period in ns of the cpu clock's frequency; of cycles it keeps that.
        const uint64_t rate =
            event_.kind == EventKind::clock ? kSecond / options_.frequency * slower : options_.frequency / slower;
        for (size_t i = 0; i < links_.size(); ++i) {
            TRY(links_[i].set_period(rate));
            rates_.change(clock_cpus_[i], sys::monotonic_ns(), slower);
        }
        sink_.rate_changed(static_cast<double>(options_.frequency) / slower, budget_->use());
        return {};
    }

    void say_slowed() {
        if (!budget_ || budget_->slowest() == 1) return;
        const double share =
            static_cast<double>(budget_->slowed_ns()) / static_cast<double>(std::max<uint64_t>(outcome_.elapsed_ns, 1));
        outcome_.warnings.push_back(format(
            "to stay within {:.3g} % of a CPU the clock ticked at less than {} Hz for {:.0f} % of the time, at {:.3g} Hz at "
            "the slowest; samples of that time count for those left out",
            100 * options_.max_cpu, options_.frequency, 100 * std::min(share, 1.0),
            static_cast<double>(options_.frequency) / budget_->slowest()));
    }

    /// All news, and the samples there are now, but for what goes beyond kAtOnce. Returns the number of samples.
    size_t drain() {
        events_.gather();
        const size_t count =
            reader_->rings() == 1 ? reader_->read([this](Bytes record) { take(record); }, kAtOnce) : drain_merged();
        // News that came after a sample waits until that has been read.
        const uint64_t oldest = oldest_ns(),
                       until = oldest == 0 ? events_.gathered_ns() : std::min(events_.gathered_ns(), oldest);
        if (until > kInFlightNs) events_.apply(until - kInFlightNs, table_);
        return count;
    }

    /// A record's time stands first; a malformed one comes first, and is counted.
    static uint64_t time_of(Bytes record) { return record.size() >= sizeof(uint64_t) ? load<uint64_t>(record.data()) : 1; }

    /// The time of the oldest sample that waits to be read; 0: none does.
    [[nodiscard]] uint64_t oldest_ns() const {
        uint64_t oldest = 0;
        const auto see = [&](Bytes record) {
            if (oldest == 0 || time_of(record) < oldest) oldest = time_of(record);
        };
        for (size_t ring = 0; ring < reader_->rings(); ++ring) {
            if (Bytes next; reader_->peek(next, ring)) see(next);
            if (!waiting_[ring].empty()) see(waiting_[ring]);
        }
        return oldest;
    }

    /// The next record of a ring, copied into its place in waiting_; false when the ring is empty.
    bool fetch(size_t ring) {
        waiting_[ring].clear();
        while (waiting_[ring].empty() && // a record without a byte gives nothing
               reader_->read([&](Bytes record) { waiting_[ring].assign(record.begin(), record.end()); }, 1, ring) == 1) {
        }
        return !waiting_[ring].empty();
    }

    /// The rings' records in the order of their times. Each ring is in order by itself, so the next one is the least of the
    /// heads.
    size_t drain_merged() {
        const auto later = [&](size_t a, size_t b) { return time_of(waiting_[a]) > time_of(waiting_[b]); };
        heap_.clear();
        for (size_t ring = 0; ring < reader_->rings(); ++ring)
            if (!waiting_[ring].empty() || fetch(ring)) heap_.push_back(ring); // the last time may have left one
        std::make_heap(heap_.begin(), heap_.end(), later);
        size_t count = 0;
        while (!heap_.empty() && count < kAtOnce) {
            std::pop_heap(heap_.begin(), heap_.end(), later);
            const size_t ring = heap_.back();
            take(waiting_[ring]);
            ++count;
            if (fetch(ring))
                std::push_heap(heap_.begin(), heap_.end(), later);
            else
                heap_.pop_back();
        }
        return count;
    }

    void take(Bytes record) {
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
        if (sample->head.t_ns > events_.gathered_ns()) events_.gather();
        events_.apply(sample->head.t_ns, table_);
        if (tracepoint_ && !on_wanted_cpu(sample->head.cpu)) {
            ++filtered_here_;
            return;
        }
        if (by_descent() && !table_.find_wanted(sample->head.pid, sample->head.t_ns)) {
            if (wait && wait->waited_ns == 0) return; // the wait itself is counted
            ++filtered_here_;
            strangers_.insert(sample->head.pid);
            counting_.met(sample->head.key, nullptr);
            return;
        }
        walk(*sample);
        if (wait && wait->waited_ns == 0) {
            unwinding_.sampled(sample->head.pid, sample->head.t_ns);
            begun_.keep(*sample);
            return;
        }
        const BegunWaits::Stack *begun = wait ? begun_.take(sample->head.tid, wait->left_ns) : nullptr;
        if (begun) take_stack(*sample, begun->frames, begun->flags);
        InternedSample interned = intern(*sample);
        interned.weight = period_ ? period_ : rates_.at(sample->head.cpu, sample->head.t_ns);
        if (wait) interned.t_ns = wait->left_ns, interned.weight = wait->waited_ns;
        counting_.met(sample->head.key, &interned);
        deliverer_.add(interned);
        if (options_.record_fd >= 0) writer_.sample(interned, tree_, table_.modules());
    }

    void walk(RawSample &sample) {
        UserStack stack{sample.head.pid, sample.head.t_ns, sample.head.flags, sample.user, sample.copy};
        if (unwinding_.walk(stack)) take_stack(sample, stack.frames, stack.ending);
    }
    static void take_stack(RawSample &sample, std::span<const uint64_t> frames, uint32_t ending) {
        sample.user = frames;
        sample.head.user_bytes = static_cast<int32_t>(frames.size_bytes());
        sample.head.flags = ending;
    }

    /// So many samples like one that was taken.
    void take_counted(const InternedSample *sample, uint64_t more) {
        if (!sample) {
            filtered_here_ += more;
            return;
        }
        deliverer_.add(*sample, more);
        unwinding_.seen_again(tree_, sample->user, sample->pid, ticked_ns_);
    }

    /// A tracepoint's program runs on all CPUs.
    [[nodiscard]] bool on_wanted_cpu(uint32_t cpu) const {
        return options_.cpus.empty() ||
               std::find(options_.cpus.begin(), options_.cpus.end(), static_cast<int>(cpu)) != options_.cpus.end();
    }

    /// Brings the map of processes to leave out up to date: those met since the last time, without those whose numbers the
    /// workload's children have now. The child itself isn't wanted before its exec, but soon.
    Result<void> keep_left_out() {
        if (!by_descent() || options_.off_cpu) return {};
        const uint64_t now = sys::monotonic_ns();
        const auto is_child = [&](uint32_t pid) { return child_.pid() > 0 && pid == static_cast<uint32_t>(child_.pid()); };
        const auto wanted = [&](uint32_t pid) { return is_child(pid) || table_.wanted(pid, now); };
        const auto take_out = [&](uint32_t pid) -> Result<void> {
            sys::Because why("this number belongs to the command now");
            return pids_->erase(&pid);
        };
        for (auto at = left_out_.begin(); at != left_out_.end();) {
            if (!wanted(*at)) {
                ++at;
                continue;
            }
            TRY(take_out(*at));
            at = left_out_.erase(at);
        }
        for (uint32_t pid : strangers_) {
            if (wanted(pid) || left_out_.count(pid) != 0) continue;
            if (left_out_.size() == kMostLeftOut) {
                for (uint32_t old : left_out_) TRY(take_out(old));
                left_out_.clear();
            }
            sys::Because why("a process that isn't the command's: no more samples of it");
            TRY(pids_->put(pid, uint8_t{1}));
            left_out_.insert(pid);
        }
        strangers_.clear();
        return {};
    }

    InternedSample intern(const RawSample &sample) {
        InternedSample out;
        const ProfileRecord &head = sample.head;
        out.t_ns = head.t_ns;
        out.pid = head.pid;
        out.tid = head.tid;
        out.cpu = head.cpu;
        out.kernel_bytes = head.kernel_bytes;
        out.user_bytes = head.user_bytes;
        std::memcpy(out.comm, head.comm, strnlen(head.comm, sizeof out.comm));
        if (head.user_bytes < 0) out.kernel_thread = table_.kernel_thread(head.pid, head.t_ns);
        if (unwinding_.on() && out.user_bytes > 0) {
            out.ending = PROFILE_ENDING(head.flags);
            unwinding_.sampled(head.pid, head.t_ns);
        }
        if (!options_.names && options_.record_fd < 0 && !unwinding_.on()) return out;
        for (size_t i = sample.kernel.size(); i-- > 0;) {
            Place place;
            place.address = sample.kernel[i];
            place.kernel = true;
            place.caller = i > 0;
            out.kernel = tree_.intern_node(out.kernel, tree_.intern_place(place));
        }
        uint32_t module = kNone;
        for (size_t i = sane_frames(sample); i-- > 0;) {
            const Place place = table_.locate(head.pid, address(sample, i), is_caller(sample, i), head.t_ns);
            out.user = tree_.intern_node(out.user, tree_.intern_place(place));
            if (place.module != module) unwinding_.used(head.pid, module = place.module, head.t_ns);
        }
        return out;
    }

    /// A user frame's address, and whether it is the one to return to, behind a call: all above the leaf are but what a signal
    /// interrupted.
    static uint64_t address(const RawSample &sample, size_t i) { return sample.user[i] & ~UNWIND_EXACT_PC; }
    static bool is_caller(const RawSample &sample, size_t i) { return i > 0 && !(sample.user[i] & UNWIND_EXACT_PC); }

    /// How many of the user frames are worth keeping. Code without frame pointers leaves anything in that register: a list's
    /// head, or its own address. The kernel follows it through the heap to the end of its buffer: a hundred addresses that aren't
    /// code. The first of them, above the last frame that is code, is kept to show where the walk went astray. Where nothing at
    /// all is known to be code (the process was gone before its maps were read), everything is kept but repetitions.
    size_t sane_frames(const RawSample &sample) {
        const auto strange = [&](size_t i) {
            return table_.locate(sample.head.pid, address(sample, i), is_caller(sample, i), sample.head.t_ns).module == kNone;
        };
        size_t count = sample.user.size();
        while (count > 0 && strange(count - 1)) --count;
        if (count > 0) return std::min(count + 1, sample.user.size());
        count = sample.user.size();
        while (count > 1 && sample.user[count - 1] == sample.user[count - 2]) --count;
        return count;
    }

    /// Names that no report can find: of the kernel, of the vdso, of code made at run time, of files that no path leads to.
    void record_names() {
        std::vector<uint32_t> kernel;
        for (uint32_t i = 0; i < tree_.places().size(); ++i)
            if (tree_.places()[i].kernel && !namer_.named(i)) kernel.push_back(i);
        namer_.name_kernel(kernel);
        std::vector<uint8_t> by_module; // whether a report can't name it
        for (uint32_t id = 0; id < table_.modules().all().size(); ++id) {
            const Module &module = table_.modules()[id];
            by_module.push_back(module.kind != ModuleKind::file || symbols_.unlinked(id, module));
        }
        for (uint32_t i = 0; i < tree_.places().size(); ++i) {
            const Place &place = tree_.places()[i];
            if (place.kernel || (place.module != kNone && by_module[place.module])) writer_.name(i, *namer_.frame(i));
        }
    }

    Result<void> start_anew() {
        if (options_.record_fd >= 0) {
            record_names();
            writer_.reset();
            TRY(writer_.flush());
        }
        TRY(counting_.start_anew()); // its samples are numbers of the tree
        TRY(deliverer_.finish());
        tree_.clear();
        return {};
    }

    // --- Afterwards ---------------------------------------------------------------------------------------------------------

    Result<void> stop() {
        {
            sys::Because why("no more samples; when this returns, no CPU runs the program any more");
            for (const PerfEventLink &link : links_) TRY(link.disable());
            if (tracepoint_) tracepoint_->detach();
        }
        outcome_.elapsed_ns = sys::monotonic_ns() - start_ns_;
        say_slowed();
        if (options_.off_cpu) options_.off_cpu->detach();
        reader_->stop();
        const int stops = options_.stop ? *options_.stop : 0;
        while (drain() > 0) {
            TRY(deliverer_.flush(sys::monotonic_ns()));
            if (options_.stop && *options_.stop > stops) leave_out(); // asked a second time
        }
        if (options_.off_cpu)
            TRY(options_.off_cpu->rest(object_, start_ns_ + outcome_.elapsed_ns, [this](Bytes record) { take(record); }));
        TRY(counting_.finish());
        end_workload();
        TRY(read_ledger());
        Cost &cost = outcome_.cost;
        if (stats_) {
            if (auto spent = run_cost(program_->fd.get())) {
                cost.bpf_runs = spent->runs;
                cost.bpf_ns = spent->ns;
            }
        }
        cost.ring_bytes = events_.bytes();
        cost.ring_bytes += reader_->ring_bytes();
        cost.table_bytes = unwinding_.stats().pool_bytes;
        cost.counted = counting_.counted();
        if (counting_.on()) {
            cost.counting = format("{} samples were counted in the kernel", cost.counted);
            if (counting_.pauses() > 0)
                append(cost.counting, "; {} times it stopped for some seconds, as most stacks were new", counting_.pauses());
        }
        cost.cpu_ns = sys::process_cpu_ns() - cpu_before_ns_;
        cost.rss_anon_bytes = rss_anon();
        if (events_.lost() > 0)
            outcome_.warnings.push_back(format("{} process events were lost: some names may be missing{}", events_.lost(),
                                               by_descent() ? ", and samples of short-lived children" : ""));
        return {};
    }

    /// What waits is counted, and not looked at.
    void leave_out() {
        for (size_t ring = 0; ring < reader_->rings(); ++ring) {
            left_out_rest_ += reader_->read([](Bytes) {}, SIZE_MAX, ring) + !waiting_[ring].empty();
            waiting_[ring].clear();
        }
    }

    /// A workload outlives the measurement only when it doesn't listen.
    void end_workload() {
        if (child_.pid() < 0) return;
        // Ctrl-C at a terminal has reached the workload as well: it may be on its way out by itself.
        outcome_.workload_status = child_.end_in_words(told_to_stop() ? kSecond / 4 : 0);
    }

    Result<void> read_ledger() {
        Ledger &ledger = outcome_.ledger;
        sys::Because why("what each CPU counted: fired, filtered, lost; with the samples shown it has to add up");
        ledger.filtered = filtered_here_;
        ledger.shown = deliverer_.shown();
        if (options_.off_cpu) {
            TRY(options_.off_cpu->account(object_, ledger));
            read_own_losses(ledger);
            return {};
        }
        // The counts stand first in each CPU's value, whatever else the program keeps there.
        const uint32_t slot = 0;
        std::vector<std::byte> values(counts_->lookup_size());
        TRY(counts_->lookup(&slot, values.data()));
        const size_t stride = (counts_->value_size() + 7) / 8 * 8;
        std::vector<ProfileCounts> counts;
        for (size_t at = 0; at + sizeof(ProfileCounts) <= values.size(); at += stride)
            counts.push_back(load<ProfileCounts>(values.data() + at));
        uint64_t ring_full = 0;
        for (const ProfileCounts &cpu : counts) {
            ledger.fired += cpu.fired;
            ledger.filtered +=
                cpu.filtered_idle + cpu.filtered_pid + cpu.filtered_cgroup + cpu.filtered_pid_namespace + cpu.filtered_comm;
            ring_full += cpu.lost_ring_full;
            ledger.sampled_out += cpu.sampled_out;
        }
        ledger.lost = {{"ring_full", ring_full}};
        read_own_losses(ledger);
        if (counting_.unknown() > 0) ledger.lost.emplace_back("unknown_stack", counting_.unknown());
        return {};
    }

    void read_own_losses(Ledger &ledger) const {
        const std::pair<const char *, uint64_t> rare[] = {{"malformed", malformed_},
                                                          {"backlog_full", __atomic_load_n(&backlog_full_, __ATOMIC_RELAXED)},
                                                          {"stopped_by_signal", left_out_rest_}};
        for (const auto &[reason, n] : rare)
            if (n > 0) ledger.lost.emplace_back(reason, n);
    }

    /// What would have the stacks walked by tables that weren't to be.
    [[nodiscard]] std::string_view remedy() const {
        const bool other_program = options_.unwind == UnwindBy::automatic && options_.bpf == BpfSource::clang;
        return other_program ? "--bpf dsl" : remedy_of(options_.unwind);
    }

    Result<void> finish() {
        links_.clear();
        if (options_.record_fd >= 0) record_names();
        TRY(deliverer_.finish());
        outcome_.ledger.degraded = deliverer_.degraded();
        outcome_.ledger.stack_ends = deliverer_.stack_ends();
        outcome_.ended_early = deliverer_.early_ends().list();
        outcome_.advice = deliverer_.early_ends().advice(table_.modules(), remedy());
        for (std::string &warning : unwinding_.warnings()) outcome_.warnings.push_back(std::move(warning));
        for (const std::string &warning : symbols_.warnings()) outcome_.warnings.push_back(warning);
        outcome_.unread = symbols_.unread();
        if (options_.debug_info)
            for (std::string &warning : options_.debug_info->warnings()) outcome_.warnings.push_back(std::move(warning));
        if (options_.record_fd >= 0) {
            writer_.end(outcome_);
            TRY(writer_.flush());
        }
        return {};
    }

    const ProfileOptions &options_;
    Event event_;
    uint64_t period_ = 0; // a sample at each so many-th event; 0: by frequency
    Sink &sink_;
    Outcome outcome_;

    LiveSymbols symbols_;
    ProcessTable table_;
    LoadedObject object_;
    Unwinding unwinding_;
    StackTree tree_;
    Namer namer_;
    Deliverer deliverer_;
    CaptureWriter writer_;
    StackCounts counting_;
    BegunWaits begun_;
    ProcessEvents events_;

    std::optional<RunStats> stats_;
    Map *counts_ = nullptr, *pids_ = nullptr;
    Program *program_ = nullptr;
    std::unique_ptr<RingReader> reader_;
    uint64_t backlog_full_ = 0, left_out_rest_ = 0;
    std::vector<std::vector<std::byte>> waiting_; // by ring: its next record, while rings are merged
    std::vector<size_t> heap_;                    // rings with a record waiting
    sys::Child child_;
    std::vector<PerfEventLink> links_;
    std::optional<TracepointLink> tracepoint_;
    std::vector<uint32_t> clock_cpus_; // by link
    std::optional<CpuBudget> budget_;
    RateHistory rates_;
    uint32_t slower_ = 1; // the clocks, than asked for
    uint64_t spent_ns_ = 0;
    std::vector<Fd> targets_; // pidfds, in the order of options_.pids
    size_t ended_targets_ = 0;
    std::unordered_set<uint32_t> left_out_, strangers_; // processes that aren't the workload's: in the map, and to be put there
    uint64_t filtered_here_ = 0; // samples that only we could judge: those of strangers who aren't in the map yet, of other CPUs
    std::optional<sys::Urgent> urgent_; // in the command's first steps
    Fd epoll_, pause_;                  // the second has nothing in it: to wait a moment

    std::vector<int> online_;
    uint64_t called_ns_ = 0, cpu_before_ns_ = 0, start_ns_ = 0, swept_ns_ = 0, ticked_ns_ = 0, malformed_ = 0, remaps_ = 0;
};

} // namespace

Result<Outcome> run_profile(const ProfileOptions &options, Sink &sink) { return Run(options, sink).run(); }

} // namespace rawbpf::inline v0
