// `rawbpf profile`: turns the command line into ProfileOptions, opens a View that receives the samples, and prints the ledger at
// the end. The profiler itself is in programs/profile. This file reports every mistake in the command line, also an output file
// that can't be opened, before it attaches anything.
#include <csignal>

#include "cli/built.h"
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
#include "programs/capture/memory_shares.h"
#include "programs/processes/container.h"
#include "programs/profile/event.h"
#include "programs/render/ledger.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf profile";

constexpr Option kOptions[] = {
    {.name = "event",
     .letter = 'e',
     .kind = OptionKind::text,
     .argument = "EVENT",
     .help = "what triggers a sample: a clock that ticks while code runs (cpu-clock, cycles), or an event (page-faults, "
             "minor-faults, major-faults, context-switches, cpu-migrations, tracepoint:CATEGORY:NAME)",
     .section = "What to sample",
     .fallback = "cpu-clock"},
    {.name = "period",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "take a sample at each N-th event; the sample counts as N events. Without --period, rawbpf takes a sample at each "
             "event. With cycles, use either --period or --freq",
     .excludes = "rates",
     .was = "count c",
     .least = 1,
     .most = INT32_MAX},
    {.name = "freq",
     .letter = 'F',
     .kind = OptionKind::count,
     .argument = "HZ",
     .help = "samples per second on each CPU, at most the kernel's perf_event_max_sample_rate; only for cpu-clock and cycles",
     .fallback = "99",
     .excludes = "rates",
     .least = 1},
    {.name = "hw",
     .help = "short for -e cycles: use the CPU's cycle counter as the clock. The CPU must have performance counters (a PMU); "
             "many virtual machines have none",
     .stands_for = "event=cycles"},
    kOffCpuOption,
    kMinWaitOption,
    followed_pids_option(),
    kNoChildrenOption,
    {.name = "comm",
     .kind = OptionKind::text,
     .argument = "NAME",
     .help = "sample only threads with this name, of at most 15 bytes"},
    {.name = "cpu", .letter = 'C', .kind = OptionKind::cpus, .argument = "LIST", .help = "sample only these CPUs: 0-3,8"},
    {.name = "cgroup",
     .kind = OptionKind::directory,
     .argument = "PATH",
     .help = "sample only tasks in this cgroup (v2) or below it",
     .excludes = "cgroups"},
    {.name = "container",
     .kind = OptionKind::text,
     .argument = "WHICH",
     .help = "sample only tasks of this container, given by the beginning of its id (docker, podman, kubernetes), its name "
             "(systemd-nspawn, lxc), or the pid of a process in it",
     .excludes = "cgroups"},
    {.name = "user-stacks", .letter = 'U', .help = "take only user stacks", .excludes = "stacks", .was = "user"},
    {.name = "kernel-stacks", .letter = 'K', .help = "take only kernel stacks", .excludes = "stacks", .was = "kernel"},
    {.name = "idle", .letter = 'I', .help = "also show samples of idle CPUs; by default rawbpf only counts them, as filtered"},
    {.name = "max-cpu",
     .kind = OptionKind::text,
     .argument = "PERCENT",
     .help = "how much of one CPU the profile itself may use. When it uses more, rawbpf lowers the rate (to 1/64 at the lowest) "
             "and raises it again later. It scales the counts as if the rate had not changed"},
    kUnwindOption,
    kUnwindMemoryOption,
    depth_option("255", "the most frames that rawbpf takes from a user stack when it walks it by unwind tables. With --off-cpu "
                        "the default is 127, because rawbpf keeps a stack for each thread"),
    kNativeOption,
    kLanguageOption,
    label_option(RAWBPF_LABEL_HELP("label each sample with KEY's value, and tell stacks apart by it", "")),
    {.name = "jvm-perfmap",
     .help =
         "ask each Java virtual machine that is met for the names of its compiled code, as jcmd PID Compiler.perfmap does (JDK "
         "17): rawbpf sends it SIGQUIT, which has it start a thread that answers, and it writes /tmp/perf-PID.map",
     .part = Part::languages},
    kRingOption,
    {.name = "duration",
     .letter = 'd',
     .kind = OptionKind::seconds,
     .argument = "SECONDS",
     .help = "how long to sample: 3, 0.5, 200ms, 2m; by default until COMMAND ends, the processes of --pid have ended, or Ctrl-C",
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
     .kind = OptionKind::file,
     .written = true,
     .argument = "FILE",
     .help = "write a capture, which rawbpf report shows on this or another machine; - is standard output. Without -f, profile "
             "then shows nothing else"},
    {.name = "otlp",
     .kind = OptionKind::text,
     .argument = "URL",
     .help = "send spans to this OpenTelemetry receiver, such as http://localhost:4318. A function that stays on a thread's "
             "stack from one sample to the next is a span. If URL is env, rawbpf uses the receiver that the environment variable "
             "OTEL_EXPORTER_OTLP_ENDPOINT names. Without -f, profile then shows nothing else",
     .part = Part::exporting},
    kOtlpEncodingOption,
    {.name = "live",
     .help = "show the hottest functions of the last ten seconds on the terminal, redrawn every second; at the end, show those "
             "of the whole run, as -f top does",
     .part = Part::report},
    kColorOption,
    kVerboseOption,
    kQuietOption,
    kSyscallsOption,
    {.name = "object",
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "run this BPF program instead of rawbpf's own: an object compiled from programs/profile/profile.bpf.c, or from your "
             "copy of it. It walks user stacks by frame pointers, and sends each sample to user space",
     .was = "bpf"},
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf profile", "the whole machine at 99 Hz, one line per sample, until Ctrl-C"},
    {"sudo rawbpf profile -f svg -o flame.svg -d 10",
     "the whole machine for ten seconds, as a flame graph; open the file in a browser"},
    {"sudo rawbpf profile -F 999 -f top -- ./server --port 80", "run a command and show its hottest functions"},
    {"sudo rawbpf profile -e page-faults -f svg -o faults.svg -- ./server", "which code touches new memory"},
    {"sudo rawbpf profile -e tracepoint:block:block_rq_issue --period 10 -f top -d 5",
     "the functions that cause disk requests, one request in ten"},
    {"sudo rawbpf profile --off-cpu --min-wait 1ms -f svg -o waits.svg -- make",
     "where a command, and all processes that it starts, wait"},
    {"sudo rawbpf profile --label http_route -f svg -o routes.svg -p 1234",
     "a process by the routes of its requests, if it publishes an OpenTelemetry context"},
    {"sudo rawbpf profile --live", "the hottest functions of the whole machine, redrawn every second"},
    {"sudo rawbpf profile --ps -p 1234", "one process, with the stack under each sample"},
    {"sudo rawbpf profile --inline --lines -f json -d 5 -p 1234",
     "with line numbers, and with inlined functions as separate frames"},
    {"sudo rawbpf profile --json -d 5 | jq -r 'select(.comm).comm' | sort | uniq -c", "count the samples of each program"},
    {"sudo rawbpf profile --record board.rbpf -d 30",
     "record on one machine; on another one, rawbpf report board.rbpf finds the names and shows the capture"},
    {"sudo rawbpf profile --object profile.bpf.o -f top -d 5", "use a BPF program of your own, compiled from C"},
    {"sudo rawbpf profile --syscalls -d 1 -o /dev/null", "show each system call"},
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

// --freq is for clocks, --period for events; cycles takes either.
Result<void> check_event(const Arguments &a) {
    const profile::Event event = TRY_IN(profile::parse_event(a.text(option("event"))), "--event");
    if (event.counts() && a.has(option("freq")))
        return wrong_usage(format("-e {}: --freq is for cpu-clock and cycles", event.name),
                           "--period N takes a sample at each N-th event; without --period, each event is a sample");
    if (event.kind == profile::EventKind::clock && a.has(option("period")))
        return wrong_usage("--period is for events, and cpu-clock is a clock", "-F HZ says how often it ticks");
    if (a.has(option("max-cpu"))) {
        (void)TRY(percent(a.text(option("max-cpu"))));
        if (event.counts() || a.has(option("period")))
            return wrong_usage(format("--max-cpu lowers a clock's rate, and -e {} counts events", event.name),
                               "a larger --period takes fewer samples");
        if (a.has(option("otlp")))
            return wrong_usage("--otlp compares the stacks of successive ticks, and --max-cpu leaves ticks out",
                               "leave one of them out");
    }
    if (a.has(option("otlp")) && (event.counts() || a.has(option("period"))))
        return wrong_usage(format("--otlp makes spans of time, and -e {} counts events", event.name), "leave one of them out");
    return {};
}

// Words that the option took when it was called --bpf and chose between two built-in programs: both mean the one that is there.
bool has_own_program(const Arguments &a) {
    const std::string_view bpf = a.text(option("object"));
    return !bpf.empty() && bpf != "dsl" && bpf != "auto";
}

// Refuses options that have no meaning together with --off-cpu.
Result<void> check_off_cpu(const Arguments &a) {
    if (!a.has(option("off-cpu"))) {
        if (!a.has(option("min-wait"))) return {};
        return wrong_usage("--min-wait is about waits, and only --off-cpu measures waits", "add --off-cpu");
    }
    struct Refused {
        Id id;
        std::string_view why, instead;
    };
    constexpr std::string_view no_clock = "--off-cpu measures at each switch of the scheduler and uses no clock";
    constexpr Refused refused[] = {
        {option("event"), "a profile is either of events or of waits", "leave one of them out"},
        {option("freq"), no_clock, "leave it out; --min-wait TIME shows less"},
        {option("max-cpu"), no_clock, "leave it out"},
        {option("cpu"), "a thread that waits is on no CPU", "leave it out; -p PID or --cgroup PATH choose the threads"},
        {option("idle"), "the idle thread of a CPU never waits", "leave it out"},
        {option("live"), "--live shows samples, not waits", "-f top -d 10"},
        {option("record"), "a capture holds samples, not waits", "-f json -o FILE keeps every wait"},
        {option("otlp"), "--otlp makes spans from samples", "rawbpf trace --otlp sends calls, with the time that each took"},
    };
    for (const Refused &one : refused)
        if (a.has(one.id))
            return wrong_usage(format("--off-cpu and --{}: {}", kOptions[one.id.index].name, one.why), std::string(one.instead));
    if (has_own_program(a))
        return wrong_usage("--off-cpu needs rawbpf's own BPF program, and --object names another one", "leave one of them out");
    const std::string_view format_name = a.text(option("format"));
    if (format_name == "folded-ext" || format_name == "firefox")
        return wrong_usage(format("-f {} has no place for how long a wait was", format_name),
                           "-f json has each wait, and -f speedscope shows the waits of each thread");
    return {};
}

// Labels come from our own program.
Result<void> check_own_labels(const Arguments &a) {
    if (!a.has(option("label"))) return {};
    TRY(check_labels(a, option("label"), a.text(option("format"))));
    if (has_own_program(a))
        return wrong_usage("--label needs rawbpf's own BPF program, and --object names another one", "leave one of them out");
    return {};
}

// Checks that the rows of the option table can't express.
Result<CommandOutput> check(const Arguments &a) {
    if (a.has(option("pid")) && !a.workload().empty())
        return wrong_usage("--pid and -- COMMAND exclude each other",
                           "with -- COMMAND, rawbpf samples only the command and its children");
    TRY(check_no_children(a, option("no-children"), option("pid"), false));
    if (a.has(option("comm")) && (a.text(option("comm")).empty() || a.text(option("comm")).size() > 15))
        return wrong_usage(format("--comm: no thread has the name '{}'", a.text(option("comm"))), "a name has 1 to 15 bytes");
    TRY(check_event(a));
    TRY(check_as_root(a, option("as-root")));
    CommandOutput command_output = TRY(place_command_output(a, output_ids(kOptions)));
    TRY(check_off_cpu(a));
    TRY(check_own_labels(a));
    TRY(check_otlp(a, otlp_ids(kOptions)));
    const bool viewed = is_viewed(a);
    if (a.has(option("live"))) {
        if (a.has(option("format")) && a.text(option("format")) != "top")
            return wrong_usage(format("--live shows -f top, not {}", a.text(option("format"))), "leave one of them out");
        if (a.has(option("syscalls")))
            return wrong_usage("--live and --syscalls both write to the terminal", "leave one of them out");
        if (a.text(option("record")) == "-")
            return wrong_usage("--live and --record - both write to standard output", "give --record a file");
        if (!is_terminal(1))
            return wrong_usage("--live draws on a terminal, and standard output isn't one",
                               "-f top writes the table once, at the end");
    }
    bool to_stdout = a.text(option("output")).empty() || a.text(option("output")) == "-";
    if (a.text(option("record")) == "-" && viewed && to_stdout)
        return wrong_usage("--record - and the results would both go to standard output",
                           "send the results to a file with -o FILE");
    if (a.has(option("output")) && !viewed)
        return wrong_usage(format("-o has nothing to write: with --{} and without -f, profile shows no results",
                                  a.has(option("record")) ? "record" : "otlp"),
                           "choose a format with -f, or leave -o out");
    if (a.has(option("otlp")) && viewed && !a.has(option("live")) &&
        render::aggregates(view_options(a, view_ids(kOptions)).format))
        return wrong_usage(
            format("-f {} adds up equal stacks, and --otlp needs the time of each sample", a.text(option("format"))),
            "-f json, folded-ext and table can be used with --otlp");
    if (a.text(option("object")) == "clang")
        return wrong_usage("--bpf clang: rawbpf no longer carries a program compiled by clang",
                           "compile one, and name the object: clang --target=bpf -O2 -g -I. -Iprograms/include -c "
                           "programs/profile/profile.bpf.c -o profile.bpf.o, then --object profile.bpf.o");
    if (a.text(option("unwind")) == "dwarf" && has_own_program(a))
        return wrong_usage("--unwind dwarf needs rawbpf's own BPF program, and --object names another one",
                           "leave one of them out");
    if (a.text(option("unwind")) == "dwarf" && a.has(option("kernel-stacks")))
        return wrong_usage("--unwind is about user stacks, and --kernel-stacks leaves them out", "leave one of them out");
    TRY(check_ready_fd(a, option("ready-fd")));
    TRY(check_record_place(a, option("record")));
    return command_output;
}

Result<ProfileOptions> profile_options(const Arguments &a) {
    ProfileOptions o;
    o.frequency = a.count(option("freq"));
    o.event = a.text(option("event"));
    o.period = a.count(option("period"));
    o.pids = a.pids(option("pid"));
    o.children = !a.has(option("no-children"));
    o.comm = a.text(option("comm"));
    o.ring_bytes = TRY(ring_bytes(a, option("ring")));
    if (a.has(option("cpu"))) o.cpus = TRY(parse_cpu_list(a.text(option("cpu"))));
    o.cgroup = a.text(option("cgroup"));
    o.per_thread = a.has(option("per-thread"));
    if (a.has(option("max-cpu"))) o.max_cpu = TRY(percent(a.text(option("max-cpu"))));
    o.kernel_stacks = !a.has(option("user-stacks"));
    o.user_stacks = !a.has(option("kernel-stacks"));
    const UnwindChoice choice = TRY(unwind_choice(a, unwind_ids(kOptions)));
    o.unwind = choice.by;
    o.unwind_memory = choice.memory;
    o.depth = a.has(option("off-cpu")) && !a.has(option("depth")) ? 127 : choice.depth;
    o.labels = label_keys(a, option("label"));
    o.ask_jvms = a.has(option("jvm-perfmap"));
    o.language_view = language_view(a, option("native"), option("language"));
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
        if (has(Part::report) && wants_live_) live_ = open_live_screen();
        return view() ? view()->start(run) : Result<void>();
    }
    Result<void> samples(std::span<const NamedSample> samples) override {
        if (spans_) spans_->samples(samples);
        if (live_) live_->samples(samples);
        return view() ? view()->samples(samples) : Result<void>();
    }
    Result<void> stacks(std::span<const CountedSample> stacks) override {
        return view() ? view()->stacks(stacks) : Result<void>();
    }
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
    [[nodiscard]] View *view() const { return has(Part::report) ? view_ : nullptr; }
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
    if (!has(Part::report) && is_viewed(a))
        return complain(kWho, left_out(Part::report, a.has(option("record")) ? "what shows samples" : "profile without --record"),
                        3);
    Result<ProfileOptions> options = profile_options(a);
    if (!options) return complain(kWho, options.error(), options_status(options.error()));
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
    if (has(Part::exporting) && a.has(option("otlp"))) {
        Result<std::unique_ptr<ProfileExport>> opened =
            open_profile_export(a, otlp_ids(kOptions), std::string(kWho), options->frequency);
        if (!opened) return complain(kWho, opened.error(), opened.error().kind == Errc::invalid_argument ? 2 : 3);
        spans = std::move(*opened);
    }
    std::unique_ptr<profile::OffCpu> off_cpu;
    if (has(Part::report) && a.has(option("off-cpu"))) {
        off_cpu = profile::make_off_cpu(static_cast<uint64_t>(a.seconds(option("min-wait")) * 1e9));
        options->off_cpu = off_cpu.get();
    }
    std::unique_ptr<View> view;
    if (has(Part::report) && is_viewed(a)) {
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
    View *viewed = has(Part::report) ? view.get() : nullptr; // always nullptr where nothing shows: nothing of View is linked then
    bool streaming = viewed && viewed->streams();
    bool progress = !quiet && !a.has(option("syscalls")) && !streaming && !a.has(option("live")) && is_terminal(2);
    bool endless = options->duration_s == 0 && options->workload.empty() && options->pids.empty();
    Receiver receiver(view.get(), record ? &*record : nullptr, spans.get(), a.has(option("live")), progress,
                      endless ? "Ctrl-C ends it" : "", verbose && !a.has(option("live")));
    stop_on_signals();

    if (verbose) {
        const uint64_t ring = options->ring_bytes ? options->ring_bytes : memory_shares().samples_ring;
        say(memory_text(kWho, format("a ring of up to {}", render::size_text(ring)), {.memory = options->unwind_memory}, 0));
    }
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
    if (viewed)
        if (Result<void> written = viewed->finish(*outcome); !written) {
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
        "Samples the code that runs. On each CPU, a clock interrupts at a given rate, and a BPF program records the process, the "
        "thread, the kernel stack and the user stack. Without --idle, profile leaves out samples of idle CPUs. Before it "
        "profiles a whole machine, rawbpf builds the unwind tables of the running programs, for at most 0.3 s (it finishes a "
        "table that it has begun). If a program has no table yet, rawbpf copies its stack and walks it later.\n\n"
        "With --event, events trigger samples instead of a clock: page faults, context switches, hits of a tracepoint. The "
        "counts are then numbers of events: with --period N, each sample counts as N.\n\n"
        "With -- COMMAND, rawbpf runs the command, samples it and its children from the first instruction on, and ends when the "
        "command ends. At the end of every profile, rawbpf prints a ledger on standard error, which accounts for every sample "
        "and says what the profile itself cost.\n\n"
        "--off-cpu measures waiting instead of running: where threads wait, and for how long. Folded stacks then count "
        "microseconds, the flame graph and the top table show time, and values in pprof are nanoseconds off the CPU. A wait that "
        "hasn't ended at the end of the profile counts up to that time.\n\n"
        "Formats: table prints one line per sample as it comes; folded counts equal stacks, one per line, for flame graph tools; "
        "folded-ext prints one line per sample with time, comm, pid, tid, CPU and frames; json prints one object per line; svg "
        "is a flame graph for a browser; top lists the hottest functions and stacks. For other tools: pprof is a gzip-compressed "
        "profile.proto; perf-script is what perf script prints; speedscope is JSON for speedscope.app; firefox is for "
        "profiler.firefox.com.",
    .options = kOptions,
    .examples = kExamples,
    .workload = true,
    .run = run_profile_command,
};

} // namespace rawbpf::inline v0::cli
