// The profiler, as the command line (or any other program) uses it.
//
//      ProfileOptions --> run_profile() ----> Sink: named samples, or named stacks with counts
//                             |                       ^
//                             +--> capture file --> report_capture()   (another machine, no privileges)
//
// run_profile loads the BPF program, attaches it, starts the workload if there is one, reads until the end, names, and hands
// over; it prints nothing and installs no signal handler: `stop` ends it.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "programs/processes/scripts.h"
#include "programs/render/frame.h"
#include "programs/render/ledger.h"
#include "programs/unwind/choice.h"
#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

namespace processes {
class DebugInfo; // source_lines.h
} // namespace processes
struct ObjectSpec; // runtime/object/spec.h
namespace profile {
class OffCpu; // off_cpu.h
} // namespace profile

/// What the renderer wants to be given.
enum class Delivery : uint8_t {
    each,    ///< every sample, a fraction of a second after it was taken, nearly in the order of time: table, folded-ext, json
    counted, ///< equal stacks counted together and handed over at the end: folded, svg
    none,    ///< nothing (only a capture file is written)
};

/// How a run is set up. The defaults profile the whole machine at 99 Hz until `stop`.
struct ProfileOptions {
    /// What is sampled, as parse_event() (event.h) takes it: "cpu-clock", "cycles" (needs a PMU), "page-faults",
    /// "context-switches", "tracepoint:sched:sched_switch" ...
    std::string event = "cpu-clock";
    uint64_t frequency = 99; ///< Hz a CPU, of cpu-clock and cycles
    uint64_t period = 0; ///< a sample at each so many-th event (not of cpu-clock); 0: each, of cycles `frequency` times a second
    std::vector<int> pids;   ///< processes to profile, until the last of them ends; empty: all
    bool children = true;    ///< and all that they have started, or start
    std::string comm;        ///< only threads of this name; empty: any
    std::vector<int> cpus;   ///< only on these; empty: all that are online
    std::string cgroup;      ///< path of a cgroup v2 directory; empty: any
    bool per_thread = false; ///< Delivery::counted: stacks of different threads are counted apart
    double max_cpu = 0;      ///< the clock ticks slower by itself while the profile costs more than this share of a CPU; 0: never
    /// Of interpreters (Python): their functions in the place of the interpreter's own, or one side alone. Needs unwinding by
    /// tables and bpf_loop (5.17).
    processes::ScriptView language_view = processes::ScriptView::both;
    /// Of processes and threads with an OpenTelemetry context: the values of these keys are the samples' labels, and tell stacks
    /// apart. "trace_id", "span_id", and keys of the context. Empty: none is read.
    std::vector<std::string> labels;
    bool ask_jvms = false; ///< for the names of their compiled code
    bool kernel_stacks = true;
    bool user_stacks = true;
    UnwindBy unwind = UnwindBy::automatic;
    uint64_t unwind_memory = 64 << 20; ///< bytes for unwind tables, of all files together; 1 MiB at least
    uint32_t depth = 127;              ///< most frames of a user stack that is walked by tables, 1 to UNWIND_MAX_FRAMES (255)
    bool idle = false;                 ///< show samples of the idle task too
    double duration_s = 0;             ///< 0: until the workload ends, the processes given have all exited, or `stop`
    std::vector<std::string> workload; ///< started, profiled from its exec to its end; excludes pids
    int workload_output = -1;          ///< what the workload has as its standard output, borrowed; -1: this process's own
    bool as_root = false;              ///< the workload keeps root under sudo, instead of becoming $SUDO_UID
    int ready_fd = -1;                 ///< a byte is written here when everything is attached (the workload not yet released)
    int record_fd = -1;                ///< a capture file is written here
    Delivery delivery = Delivery::each;
    bool names = true; ///< name the frames; false: samples carry only sizes, no frames (table without --ps)
    processes::DebugInfo *debug_info = nullptr; ///< where lines, inlined functions and missing debug files come from
    bool lines = false, inlined = false;        ///< frames know their lines; functions inlined are frames of their own
    /// A program of one's own, an object compiled from C as profile.bpf.c is; it has no unwinder and sends every sample. Must
    /// outlive the run. nullptr: the DSL's program (profile_dsl.cpp).
    const ObjectSpec *program = nullptr;
    /// With Delivery::counted: room for so many different stacks that are counted in the kernel; 0: each sample is sent.
    uint32_t stack_counts = 8192;
    /// Waits in place of samples: each time a thread was off its CPU, blocked, is a sample (RunInfo::waits). What is
    /// said of clocks (frequency, cpus, idle) and program then means nothing; other events, max_cpu and record_fd aren't
    /// possible.
    profile::OffCpu *off_cpu = nullptr;
    uint64_t backlog = uint64_t{64} << 20; ///< bytes at most of samples that came and haven't been looked at yet
    /// One may move samples out of the rings while this one is busy: of events and of waits, which come in bursts.
    bool thread = false;
    size_t ring_bytes = 0;                            ///< size of the ring, a power of two of pages; 0: by CPUs and frequency
    const volatile std::sig_atomic_t *stop = nullptr; ///< ends the run cleanly when it becomes nonzero, and then without what
                                                      ///< still waits when it grows again; may be nullptr
    std::vector<std::string> command;                 ///< rawbpf's own command line, for RunInfo
    std::string version;                              ///< rawbpf's version, for RunInfo
};

/// Equal samples: same process, thread name and stacks.
struct CountedSample {
    NamedSample sample; ///< of the first of them (t_ns, tid, cpu are that one's)
    uint64_t count = 0;
    uint64_t weight = 0; ///< the sum of all their weights; `sample.weight` is the first one's
};

/// For a line of progress on a terminal.
struct Progress {
    double seconds = 0; ///< since the start
    uint64_t samples = 0, processes = 0, distinct_stacks = 0, lost = 0;
};

/// Receives the results. An Error from it ends the run and is returned by run_profile.
class Sink {
  public:
    virtual ~Sink() = default;
    /// Once, when everything is attached, before the first sample.
    virtual Result<void> start(const RunInfo &) { return {}; }
    /// Delivery::each: some samples. Called at most about ten times a second.
    virtual Result<void> samples(std::span<const NamedSample>) { return {}; }
    /// Delivery::counted: some of the stacks with their counts, usually after the end of the capture. Called several times; in
    /// very long captures a stack may come again with a further count.
    virtual Result<void> stacks(std::span<const CountedSample>) { return {}; }
    /// About every 100 ms during the capture.
    virtual void progress(const Progress &) {}
    /// ProfileOptions::max_cpu: from now on the clocks tick at this rate, since the profile used this share of a CPU.
    virtual void rate_changed(double /*hz*/, double /*use*/) {}
};

/// What the run itself cost; for a report zero where it isn't known.
struct Cost {
    uint64_t bpf_runs = 0, bpf_ns = 0; ///< BPF_ENABLE_STATS (5.8): runs of the program, and time in it
    uint64_t cpu_ns = 0;         ///< user + system time of rawbpf itself, from when all is attached to the end of the capture
    uint64_t rss_anon_bytes = 0; ///< RssAnon at the end of the capture, before the final naming
    uint64_t table_bytes = 0;    ///< memory for unwind tables; not in a capture
    uint64_t ring_bytes = 0;     ///< memory of the rings (samples and process events)
    uint64_t counted = 0;        ///< samples that were counted in the kernel, not sent; not in a capture
    std::string counting;        ///< of Delivery::counted, in words: what was counted so, or why nothing was
    uint64_t armed_ns = 0;       ///< from the call of run_profile until everything was attached
    [[nodiscard]] double ns_per_run() const { return bpf_runs ? double(bpf_ns) / double(bpf_runs) : 0; }
};

/// How it went. The ledger is exact (Ledger::adds_up()).
struct Outcome {
    RunInfo run;
    Ledger ledger;
    Cost cost;
    uint64_t elapsed_ns = 0; ///< from armed to disabled
    /// Where user stacks ended before a thread's first function: module of the outermost frame, samples; most first.
    std::vector<std::pair<std::string, uint64_t>> ended_early;
    std::vector<render::StackAdvice> advice;    ///< what would make more of them whole; not in a capture, a report finds it anew
    std::optional<std::string> workload_status; ///< "exited with status 3", "was killed by SIGSEGV"; nullopt: no workload
    std::vector<std::string> languages;         ///< of interpreters: what was learnt of each build, or why nothing is; for -v
    std::vector<std::string> warnings;          ///< sentences for stderr ("3 modules could not be read: ...")
    /// It isn't whole: names are missing because a file that is here could not be read (EIO, ENOMEM), or a capture ends early.
    bool unread = false;
};

/// Captures, names and delivers. Errors: invalid_argument (a frequency above the limit, which is named; no such event), not_found
/// (a tracepoint; a process that doesn't exist, which is named), unsupported (no PMU, no ring buffer), permission (names CAP_BPF
/// and CAP_PERFMON).
[[nodiscard]] Result<Outcome> run_profile(const ProfileOptions &options, Sink &sink);

struct ReportOptions {
    bool per_thread = false; ///< as in ProfileOptions
    std::string symfs;       ///< files are looked for under this directory first: by path, then as .build-id/xx/yyyy.debug
    Delivery delivery = Delivery::each;
    bool names = true;
    processes::DebugInfo *debug_info = nullptr; ///< as in ProfileOptions
    bool languages = true;                      ///< the functions of interpreters (Python) in the place of the interpreter's own
    bool lines = false, inlined = false;
};

/// What a capture says of its recording. Errors: bad_input with the offset, wherever in the capture that is.
[[nodiscard]] Result<RunInfo> captured_run(Bytes capture, const std::string &name);

/// Reads a capture (written by ProfileOptions::record_fd), names it with the files of this machine or of `symfs`, and delivers.
/// `name` is for messages. Errors: bad_input with the offset for a capture that is cut or hostile.
[[nodiscard]] Result<Outcome> report_capture(Bytes capture, const std::string &name, const ReportOptions &options, Sink &sink);

} // namespace rawbpf::inline v0
