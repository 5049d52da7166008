// `rawbpf profile`: makes a ProfileOptions of the options, a View that receives the samples, and prints the ledger at the end.
// The profiler itself is in programs/profile. Every mistake in the command line, also one in the output file, is found before
// anything is attached.
#include <csignal>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/profile_export.h"
#include "cli/profile_live.h"
#include "cli/profile_off_cpu.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "cli/view.h"
#include "programs/processes/container.h"
#include "programs/profile/event.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf profile";

constexpr Option kOptions[] = {
    {.name = "event",
     .letter = 'e',
     .kind = Kind::text,
     .argument = "EVENT",
     .help = "what triggers a sample: a clock that ticks while code runs (cpu-clock, cycles), or an event (page-faults, "
             "minor-faults, major-faults, context-switches, cpu-migrations, tracepoint:CATEGORY:NAME)",
     .section = "What to sample",
     .fallback = "cpu-clock"},
    {.name = "count",
     .letter = 'c',
     .kind = Kind::count,
     .argument = "N",
     .help = "take a sample at each N-th event; the sample counts as N events. Without it, each event is a sample. With cycles, "
             "instead of --freq",
     .excludes = "rates",
     .least = 1,
     .most = INT32_MAX},
    {.name = "freq",
     .letter = 'F',
     .kind = Kind::count,
     .argument = "HZ",
     .help = "samples per second on each CPU, up to the kernel's perf_event_max_sample_rate; for cpu-clock and cycles",
     .fallback = "99",
     .excludes = "rates",
     .least = 1},
    {.name = "hw",
     .help = "short for -e cycles: use the CPU's cycle counter as the clock. It needs a PMU, which many virtual machines lack",
     .stands_for = "event=cycles"},
    kOffCpuOption,
    kMinWaitOption,
    {.name = "pid",
     .letter = 'p',
     .kind = Kind::pids,
     .repeatable = true,
     .argument = "PID",
     .help =
         "only this process, or a list 1,2,3, and all that they started or will start; ends when the last of those given ends"},
    kNoChildrenOption,
    {.name = "comm", .kind = Kind::text, .argument = "NAME", .help = "only threads of this name; a name has at most 15 bytes"},
    {.name = "cpu", .letter = 'C', .kind = Kind::cpus, .argument = "LIST", .help = "only these CPUs: 0-3,8"},
    {.name = "cgroup",
     .kind = Kind::directory,
     .argument = "PATH",
     .help = "only tasks in this cgroup (v2) or below it",
     .excludes = "cgroups"},
    {.name = "container",
     .kind = Kind::text,
     .argument = "WHICH",
     .help = "only tasks of this container, given by the beginning of its id (docker, podman, kubernetes), its name "
             "(systemd-nspawn, lxc), or the number of a process in it",
     .excludes = "cgroups"},
    {.name = "user", .letter = 'U', .help = "only user stacks", .excludes = "stacks"},
    {.name = "kernel", .letter = 'K', .help = "only kernel stacks", .excludes = "stacks"},
    {.name = "idle", .letter = 'I', .help = "show samples of idle CPUs too; otherwise they are only counted, as filtered"},
    {.name = "max-cpu",
     .kind = Kind::text,
     .argument = "PERCENT",
     .help = "how much of one CPU the profile itself may use. When it uses more, rawbpf slows the clock down (to a 64th of the "
             "rate at least) and speeds it up again later. Counts are scaled as if the clock had kept its rate"},
    kUnwindOption,
    kUnwindMemoryOption,
    depth_option("255",
                 "the most frames of a user stack that is walked by tables; with --off-cpu, where each thread has room for "
                 "them, 127 unless you say more"),
    kRingOption,
    {.name = "duration",
     .letter = 'd',
     .kind = Kind::seconds,
     .argument = "SECONDS",
     .help = "how long: 3, 0.5, 200ms, 2m; otherwise until "
             "COMMAND ends, the processes given have ended, or Ctrl-C",
     .section = "How long"},
    kAsRootOption,
    kCommandOutputOption,
    kReadyFdOption,
    kBacklogOption,
    kFormatOption,
    kJsonOption,
    kOutputOption,
    kPsOption,
    kLinesOption,
    kInlineOption,
    kDelimiterOption,
    kPerThreadOption,
    kTitleOption,
    kIcicleOption,
    {.name = "record",
     .kind = Kind::file,
     .written = true,
     .argument = "FILE",
     .help = "write a capture, for rawbpf report on this or another machine; - is standard output. Nothing else is shown unless "
             "-f is given"},
    {.name = "otlp",
     .kind = Kind::text,
     .argument = "URL",
     .help = "send spans to this OpenTelemetry receiver, such as http://localhost:4318. A function that stays on a thread's "
             "stack from one sample to the next is a span. env: the receiver that OTEL_EXPORTER_OTLP_ENDPOINT names. Nothing "
             "else is shown unless -f is given"},
    kOtlpEncodingOption,
    {.name = "live",
     .help = "show the hottest functions of the last ten seconds on the terminal, redrawn every second; at the end those of the "
             "whole run, as -f top does"},
    kColorOption,
    kVerboseOption,
    kQuietOption,
    kSyscallsOption,
    {.name = "object",
     .kind = Kind::file,
     .argument = "FILE",
     .help =
         "run this BPF program in place of rawbpf's own: an object compiled from programs/profile/profile.bpf.c, or from your "
         "copy of it. It walks user stacks by frame pointers, and each sample is sent",
     .was = "bpf"},
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf profile", "the whole machine at 99 Hz, one line per sample, until Ctrl-C"},
    {"sudo rawbpf profile -f svg -o flame.svg -d 10", "ten seconds of it as a flame graph; open the file in a browser"},
    {"sudo rawbpf profile -F 999 -f top -- ./server --port 80", "run a command and show its hottest functions"},
    {"sudo rawbpf profile -e page-faults -f svg -o faults.svg -- ./server",
     "which code touches new memory, instead of which code computes"},
    {"sudo rawbpf profile -e tracepoint:block:block_rq_issue -c 10 -f folded -d 60",
     "the stacks that one disk request in ten comes from"},
    {"sudo rawbpf profile --off-cpu --min-wait 1ms -f svg -o waits.svg -- make",
     "what a command and everything that it starts wait for"},
    {"sudo rawbpf profile --live", "what the machine does, as it does it"},
    {"sudo rawbpf profile --ps -p 1234", "one process, with the stack under each sample"},
    {"sudo rawbpf profile --inline --lines -f json -d 5 -p 1234", "with lines, and inlined functions as frames of their own"},
    {"sudo rawbpf profile --json -d 5 | jq -r 'select(.comm).comm' | sort | uniq -c", "who was on the CPU, counted"},
    {"sudo rawbpf profile --record board.rbpf -d 30",
     "capture on one machine; rawbpf report board.rbpf names and shows it on another"},
    {"sudo rawbpf profile --object profile.bpf.o -f top -d 5", "with a program of your own, compiled from C"},
    {"sudo rawbpf profile --syscalls -d 1 -o /dev/null", "see each system call"},
};

// Whether results are shown: a capture, or spans, are enough of a result.
bool is_viewed(const Arguments &a) {
    return a.has(option("format")) || a.has(option("live")) || !(a.has(option("record")) || a.has(option("otlp")));
}

// How samples are shown: --live asks for the table of the hottest, as -f top does.
ViewOptions shown(const Arguments &a) {
    ViewOptions view = view_options(a, view_ids(kOptions));
    if (a.has(option("live"))) view.format = render::Format::top;
    return view;
}

// "1%", "0.5" as a share; above 0, up to 100 %.
Result<double> percent(std::string_view text) {
    std::string_view number = text;
    if (number.ends_with('%')) number.remove_suffix(1);
    const Result<double> value = number.find_first_not_of("0123456789.") == number.npos
                                     ? parse_seconds(number)
                                     : Result<double>(fail(Errc::invalid_argument, "not a number"));
    if (!value || *value <= 0 || *value > 100)
        return wrong_usage(format("--max-cpu: '{}' isn't a share of a CPU", text), "0.5, 1%, 20%: above 0, up to 100");
    return *value / 100;
}

// Events that happen have no rate, and the clock nothing to count.
Result<void> check_event(const Arguments &a) {
    const profile::Event event = TRY_IN(profile::parse_event(a.text(option("event"))), "--event");
    if (event.counts() && a.has(option("freq")))
        return wrong_usage(format("-e {}: --freq is for cpu-clock and cycles", event.name),
                           "-c N takes a sample at each N-th; without it each is one");
    if (event.kind == profile::EventKind::clock && a.has(option("count")))
        return wrong_usage("--count is for events, and cpu-clock is a clock", "-F HZ says how often it ticks");
    if (a.has(option("max-cpu"))) {
        (void)TRY(percent(a.text(option("max-cpu"))));
        if (event.counts() || a.has(option("count")))
            return wrong_usage(format("--max-cpu lowers a clock's rate, and -e {} counts events", event.name),
                               "a larger --count takes fewer samples");
        if (a.has(option("otlp")))
            return wrong_usage(
                "--otlp makes spans of what is on the stack from one tick to the next, and --max-cpu leaves ticks out",
                "leave one of them out");
    }
    if (a.has(option("otlp")) && (event.counts() || a.has(option("count"))))
        return wrong_usage(format("--otlp makes spans of time, and -e {} counts events", event.name), "leave one of them out");
    return {};
}

// Words that the option took when it was called --bpf and chose between two built-in programs: both mean the one that is there.
bool has_own_program(const Arguments &a) {
    const std::string_view bpf = a.text(option("object"));
    return !bpf.empty() && bpf != "dsl" && bpf != "auto";
}

// --off-cpu beside what means nothing for waits.
Result<void> check_off_cpu(const Arguments &a) {
    if (!a.has(option("off-cpu"))) {
        if (!a.has(option("min-wait"))) return {};
        return wrong_usage("--min-wait is about waits, and without --off-cpu there are none", "add --off-cpu");
    }
    struct Refused {
        Id id;
        std::string_view why, instead;
    };
    constexpr std::string_view no_clock = "waits are seen at the scheduler's switch: no clock is needed";
    constexpr Refused refused[] = {
        {option("event"), "either what happens or who waits", "leave one of them out"},
        {option("freq"), no_clock, "leave it out; --min-wait TIME shows less"},
        {option("max-cpu"), no_clock, "leave it out"},
        {option("cpu"), "a thread that waits is on no CPU", "leave it out; -p PID or --cgroup PATH choose whose waits"},
        {option("idle"), "an idle CPU's own thread waits for nothing", "leave it out"},
        {option("live"), "the table on the terminal is of samples", "-f top -d 10"},
        {option("record"), "a capture has samples, and no waits", "-f json -o FILE keeps every wait"},
        {option("otlp"), "spans are made of samples", "rawbpf trace --otlp has calls with the time that they took"},
    };
    for (const Refused &one : refused)
        if (a.has(one.id))
            return wrong_usage(format("--off-cpu and --{}: {}", kOptions[one.id.index].name, one.why), std::string(one.instead));
    if (has_own_program(a))
        return wrong_usage("--off-cpu and --object: waits are seen by another program, of rawbpf's own", "leave one of them out");
    const std::string_view format_name = a.text(option("format"));
    if (format_name == "folded-ext" || format_name == "firefox")
        return wrong_usage(format("-f {} has no place for how long a wait was", format_name),
                           "-f json has each wait, and -f speedscope shows them by thread");
    return {};
}

// What can't be said row by row in the table.
Result<CommandOutput> check(const Arguments &a) {
    if (a.has(option("pid")) && !a.workload().empty())
        return wrong_usage("--pid and -- COMMAND exclude each other", "COMMAND and its children are all that is sampled then");
    TRY(check_no_children(a, option("no-children"), option("pid"), false));
    if (a.has(option("comm")) && (a.text(option("comm")).empty() || a.text(option("comm")).size() > 15))
        return wrong_usage(format("--comm: no thread has the name '{}'", a.text(option("comm"))), "a name has 1 to 15 bytes");
    TRY(check_event(a));
    TRY(check_as_root(a, option("as-root")));
    CommandOutput command_output =
        TRY(place_command_output(a, option("command-output"), a.text(option("format")), a.text(option("output"))));
    TRY(check_off_cpu(a));
    TRY(check_otlp(a, otlp_ids(kOptions)));
    const bool viewed = is_viewed(a);
    if (a.has(option("live"))) {
        if (a.has(option("format")) && a.text(option("format")) != "top")
            return wrong_usage(format("--live shows -f top, not {}", a.text(option("format"))), "leave one of them out");
        if (a.has(option("syscalls")))
            return wrong_usage("--live and --syscalls both want the terminal", "leave one of them out");
        if (a.text(option("record")) == "-")
            return wrong_usage("--live and --record - both want standard output", "--record FILE");
        if (!is_terminal(1))
            return wrong_usage("--live draws on a terminal, and standard output isn't one",
                               "-f top writes the table once, at the end");
    }
    bool to_stdout = a.text(option("output")).empty() || a.text(option("output")) == "-";
    if (a.text(option("record")) == "-" && viewed && to_stdout)
        return wrong_usage("--record - and the results both want standard output", "send the results to a file with -o FILE");
    if (a.has(option("output")) && !viewed)
        return wrong_usage(
            format("-o has nothing to write: --{} alone shows nothing", a.has(option("record")) ? "record" : "otlp"),
            "choose a format with -f, or leave -o out");
    if (a.has(option("otlp")) && viewed && !a.has(option("live")) &&
        render::aggregates(view_options(a, view_ids(kOptions)).format))
        return wrong_usage(format("-f {} counts equal stacks, and spans need each sample's time", a.text(option("format"))),
                           "-f json, folded-ext and table go with --otlp");
    if (a.text(option("object")) == "clang")
        return wrong_usage("--bpf clang: rawbpf no longer carries a program compiled by clang",
                           "compile it, and name the object: clang --target=bpf -O2 -g -I. -Iprograms/include -c "
                           "programs/profile/profile.bpf.c -o profile.bpf.o, then --object profile.bpf.o");
    if (a.text(option("unwind")) == "dwarf" && has_own_program(a))
        return wrong_usage("--unwind dwarf is done by rawbpf's own program, and --object names another one",
                           "leave one of them out");
    if (a.text(option("unwind")) == "dwarf" && a.has(option("kernel")))
        return wrong_usage("--unwind is about user stacks, and --kernel leaves them out", "leave one of them out");
    TRY(check_ready_fd(a, option("ready-fd")));
    if (a.text(option("record")) == "-" && is_terminal(1))
        return wrong_usage("--record -: a capture isn't for a terminal to show",
                           "send it to a file, or through a pipe to rawbpf report -");
    return command_output;
}

Result<ProfileOptions> profile_options(const Arguments &a) {
    ProfileOptions o;
    o.frequency = a.count(option("freq"));
    o.event = a.text(option("event"));
    o.period = a.count(option("count"));
    o.pids = a.pids(option("pid"));
    o.children = !a.has(option("no-children"));
    o.comm = a.text(option("comm"));
    o.ring_bytes = TRY(ring_bytes(a, option("ring")));
    if (a.has(option("cpu"))) o.cpus = TRY(parse_cpu_list(a.text(option("cpu"))));
    o.cgroup = a.text(option("cgroup"));
    o.per_thread = a.has(option("per-thread"));
    if (a.has(option("max-cpu"))) o.max_cpu = TRY(percent(a.text(option("max-cpu"))));
    o.kernel_stacks = !a.has(option("user"));
    o.user_stacks = !a.has(option("kernel"));
    const UnwindChoice choice = TRY(unwind_choice(a, unwind_ids(kOptions)));
    o.unwind = choice.by;
    o.unwind_memory = choice.memory;
    o.depth = a.has(option("off-cpu")) && !a.has(option("depth")) ? 127 : choice.depth;
    o.idle = a.has(option("idle"));
    o.duration_s = a.seconds(option("duration"));
    o.workload = a.workload();
    o.as_root = a.has(option("as-root"));
    if (a.has(option("ready-fd"))) o.ready_fd = static_cast<int>(a.count(option("ready-fd")));
    o.stop = &stop_wanted;
    o.backlog = TRY(backlog_bytes(a, option("backlog")));
    o.thread = true;
    o.command = own_command_line({"rawbpf", "profile"}, a);
    o.version = RAWBPF_VERSION;
    return o;
}

// A view that may be absent (--record alone), the capture file beside it, and the line of progress.
class Receiver final : public Sink {
  public:
    Receiver(View *view, Output *record, ProfileExport *spans, bool live, bool progress, std::string_view note, bool tell_rates)
        : tell_rates_(tell_rates), view_(view), record_(record), spans_(spans), wants_live_(live), line_(progress, note) {}
    /// `starting` is over when the run begins.
    void begins_after(Starting &starting) { starting_ = &starting; }
    Result<void> start(const RunInfo &run) override {
        if (starting_) starting_->over();
        if (record_) {
            TRY(record_->empty());
            record_->keep();
        }
        if (spans_) TRY(spans_->start());
        if (wants_live_) live_ = open_live_screen();
        return view_ ? view_->start(run) : Result<void>();
    }
    Result<void> samples(std::span<const NamedSample> samples) override {
        if (spans_) spans_->samples(samples);
        if (live_) live_->samples(samples);
        return view_ ? view_->samples(samples) : Result<void>();
    }
    Result<void> stacks(std::span<const CountedSample> stacks) override { return view_ ? view_->stacks(stacks) : Result<void>(); }
    void progress(const Progress &progress) override {
        line_.show(progress);
        if (live_) live_->progress(progress);
    }
    void rate_changed(double hz, double use) override {
        if (!tell_rates_) return;
        line_.clear();
        say(format("{}: {:.1f} % of a CPU: now at {:.3g} Hz\n", kWho, 100 * use, hz));
    }
    void end_progress() {
        line_.clear();
        live_ = nullptr;
    }

  private:
    bool tell_rates_;
    Starting *starting_ = nullptr;
    View *view_;
    Output *record_;
    ProfileExport *spans_;
    bool wants_live_;
    std::unique_ptr<LiveScreen> live_;
    ProgressLine line_;
};

int run_profile_command(const Arguments &a) {
    Result<CommandOutput> command_output = check(a);
    if (!command_output) return complain(kWho, command_output.error(), 2);
    Result<ProfileOptions> options = profile_options(a);
    if (!options) return complain(kWho, options.error(), 2);
    options->workload_output = command_output->fd;

    if (a.has(option("container"))) {
        Result<std::string> found = processes::find_container(processes::cgroup_root(), a.text(option("container")));
        if (!found) return complain(kWho, in_context(std::move(found).error(), "--container"), 1);
        options->cgroup = std::move(*found);
    }

    std::optional<ObjectFile> own;
    if (has_own_program(a)) {
        Result<ObjectFile> opened = open_object(a.text(option("object")));
        if (!opened) return complain(kWho, in_context(std::move(opened).error(), "--object"), 1);
        options->program = &own.emplace(std::move(*opened)).spec;
    }

    // Outputs first: whatever is wrong with a path is no matter of privileges, so its status is 1.
    std::unique_ptr<ProfileExport> spans;
    if (a.has(option("otlp"))) {
        Result<std::unique_ptr<ProfileExport>> opened =
            open_profile_export(a, otlp_ids(kOptions), std::string(kWho), options->frequency);
        if (!opened) return complain(kWho, opened.error(), opened.error().kind == Errc::invalid_argument ? 2 : 3);
        spans = std::move(*opened);
    }
    std::unique_ptr<profile::OffCpu> off_cpu;
    if (a.has(option("off-cpu"))) {
        off_cpu = profile::make_off_cpu(static_cast<uint64_t>(a.seconds(option("min-wait")) * 1e9));
        options->off_cpu = off_cpu.get();
    }
    std::unique_ptr<View> view;
    if (is_viewed(a)) {
        Result<std::unique_ptr<View>> opened = View::open(shown(a));
        if (!opened) return complain(kWho, opened.error(), opened.error().kind == Errc::unsupported ? 3 : 1);
        view = std::move(*opened);
        options->delivery = view->delivery();
        options->names = view->wants_names();
    } else {
        options->delivery = Delivery::none;
    }
    if (spans || a.has(option("live"))) {
        options->delivery = Delivery::each;
        options->names = true;
    }
    Result<std::unique_ptr<processes::DebugInfo>> debug_info = debug_info_for(a, lines_ids(kOptions));
    if (!debug_info) return complain(kWho, debug_info.error(), 3);
    options->debug_info = debug_info->get();
    options->lines = a.has(option("lines"));
    options->inlined = a.has(option("inline"));
    std::optional<Output> record;
    if (a.has(option("record"))) {
        Result<Output> opened = Output::open(a.text(option("record")));
        if (!opened) return complain(kWho, opened.error(), 1);
        record.emplace(std::move(*opened));
        options->record_fd = record->fd();
    }

    bool quiet = a.has(option("quiet")), verbose = a.has(option("verbose"));
    bool streaming = view && view->streams();
    bool progress = !quiet && !a.has(option("syscalls")) && !streaming && !a.has(option("live")) && is_terminal(2);
    bool endless = options->duration_s == 0 && options->workload.empty() && options->pids.empty();
    Receiver receiver(view.get(), record ? &*record : nullptr, spans.get(), a.has(option("live")), progress,
                      endless ? "Ctrl-C ends it" : "", verbose && !a.has(option("live")));
    stop_on_signals();

    Starting starting(std::string(kWho), quiet);
    receiver.begins_after(starting);
    Result<Outcome> outcome = run_profile(*options, receiver);
    starting.over();
    receiver.end_progress();
    if (!outcome) {
        Error error = std::move(outcome).error();
        if (reader_gone(error)) return 0;
        if (own && !verbose) error.log.clear(); // what the verifier meant is said; its log is for -v, as in rawbpf load
        return complain(kWho, error);
    }
    if (view)
        if (Result<void> written = view->finish(*outcome); !written) {
            if (reader_gone(written.error())) return 0;
            return complain(kWho, written.error(), 1);
        }
    const std::string sent = spans ? spans->finish() : "";
    say_outcome(kWho, *outcome, options->workload.empty() ? "" : options->workload[0], quiet, verbose);
    if (!quiet) say(sent);
    if (outcome->unread) return 1;
    return spans ? spans->status() : 0;
}

} // namespace

const Command kProfile{
    .name = "profile",
    .summary = "sample what runs on the CPUs, with kernel and user stacks",
    .description =
        "Samples the code that runs. On each CPU a clock interrupts at a given rate, and a BPF program records the process, the "
        "thread, the kernel stack and the user stack. Samples of idle CPUs are left out unless --idle is given. Before it "
        "profiles a whole machine, rawbpf makes the unwind tables of the running programs, for at most 0.3 s (it finishes the "
        "table of a file that it has begun). If a program has no table yet, its stack is copied and walked later.\n\n"
        "With "
        "--event, events trigger samples instead of a clock: page faults, context switches, hits of a tracepoint. Counts are "
        "then numbers of events: with --count N, each sample counts as N.\n\n"
        "With -- COMMAND, rawbpf runs the command, samples "
        "it and its children from the first instruction on, and ends when the command ends. At the end it prints a ledger on "
        "standard error, which accounts for every sample and says what the profile itself cost.\n\n"
        "--off-cpu measures waiting "
        "instead of running: where threads wait, and for how long. Folded stacks then count microseconds, the flame graph and "
        "the top table show time, and values in pprof are nanoseconds off the CPU. A wait that hasn't ended counts until the end "
        "of the profile.\n\n"
        "Formats: table prints one line per sample as it comes; folded counts equal stacks, one per line, for "
        "flame graph tools; folded-ext prints one line per sample with time, comm, pid, tid, CPU and frames; json prints one "
        "object per line; svg is a flame graph for a browser; top lists the hottest functions and stacks. For other tools: pprof "
        "is a gzip-compressed profile.proto; perf-script is what perf script prints; speedscope is JSON for speedscope.app; "
        "firefox is for profiler.firefox.com.",
    .options = kOptions,
    .examples = kExamples,
    .workload = true,
    .run = run_profile_command,
};

} // namespace rawbpf::inline v0::cli
