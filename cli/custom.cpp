// `rawbpf custom`: other programs' contexts with the stacks they were in. The tracing itself is in programs/custom.
#include <algorithm>
#include <csignal>
#include <optional>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "cli/view.h"
#include "programs/custom/tail_call.h"
#include "programs/custom/tracer.h"
#include "programs/custom/view.h"
#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/run_cost.h"
#include "programs/session/run_info.h"
#include "programs/session/session.h"
#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr const char *kWho = "rawbpf custom";
constexpr size_t kAtOnce = 8192; // traces that are taken before anything else is looked at
constexpr int kTickMs = 50;
constexpr uint64_t kSecond = 1'000'000'000;

constexpr Option kOptions[] = {
    {.name = "arg",
     .letter = 'a',
     .kind = Kind::count,
     .argument = "N",
     .help = "which argument of the function is the context; the first one is 0",
     .section = "What to trace",
     .fallback = "0",
     .excludes = "external",
     .most = 7},
    {.name = "object",
     .kind = Kind::file,
     .argument = "OBJ",
     .help = "use your own BPF programs, from this object file, instead of the built-in one: they store a context and jump "
             "through a prog array",
     .excludes = "external"},
    {.name = "pin",
     .kind = Kind::directory,
     .argument = "DIR",
     .help = "for programs of another loader: pin custom__generic, custom_context_by_thread and so on in DIR, on a bpf file "
             "system, until rawbpf ends"},
    {.name = "freq",
     .letter = 'F',
     .kind = Kind::count,
     .argument = "HZ",
     .help = "also sample every CPU at this rate",
     .was = "sample",
     .least = 1},
    {.name = "off-cpu",
     .help =
         "also show what threads wait for, and how long: the threads of COMMAND and of what it starts, otherwise all threads"},
    followed_pids_option(),
    kNoChildrenOption,
    kUnwindOption,
    kUnwindMemoryOption,
    kDepthOption,
    kRingOption,
    kDurationOption,
    kAsRootOption,
    kCommandOutputOption,
    kReadyFdOption,
    kBacklogOption,
    format_option("text", custom::kFormatChoices),
    kJsonOption,
    kLinesOption,
    kInlineOption,
    {.name = "weight",
     .kind = Kind::choice,
     .argument = "WHAT",
     .help = "folded, svg, top: what to add up for each stack: how often it came, its contexts, or its nanoseconds off the CPU",
     .fallback = "count",
     .choices = "count context off-cpu"},
    kOutputOption,
    kColorOption,
    verbose_option("show each step of the setup, and how long a tail call takes"),
    kQuietOption,
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf custom ./server:handle -- ./server", "the stack at each call, with the first argument as its context"},
    {"sudo rawbpf custom ./server:handle --arg 1 -F 99 -d 10 -f json",
     "the second argument as context; samples in the same stream"},
    {"sudo rawbpf custom --object mine.bpf.o ./server:handle -v", "your own program decides what the context is"},
    {"sudo rawbpf custom --pin /sys/fs/bpf/rawbpf", "programs that libbpf, cilium/ebpf or aya load can join"},
    {"sudo rawbpf custom ./server:handle -f pprof -o x.pb.gz -d 10", "for pprof -tagfocus context=0x2a and its like"},
    {"sudo rawbpf custom ./copy:copied -f svg --weight context -o x.svg -- ./copy", "bytes by stack, as a flame graph"},
};

constexpr ObservedIds kObservedIds = observed_ids(kOptions);

Result<CommandOutput> check(const Arguments &a) {
    const bool target = !a.operands().empty();
    if (!target && !a.has(option("object")) && !a.has(option("pin")))
        return wrong_usage("TARGET:FUNCTION is missing", "as in ./prog:handle_request; or --object, or --pin");
    if (a.has(option("arg")) && !target) return wrong_usage("--arg is about the function of TARGET:FUNCTION");
    const std::string_view shape = a.text(option("format"));
    if (a.has(option("weight")) && !custom::is_weighed(custom::rendered(shape)))
        return wrong_usage(format("--weight is for -f folded, svg and top, not {}", shape));
    const std::string_view weight = a.text(option("weight"));
    if (weight != "count" && a.has(option("freq")))
        return wrong_usage(format("--weight {}: samples have no context and no time", weight), "leave --freq out");
    if (weight == "context" && a.has(option("off-cpu")))
        return wrong_usage("--weight context: waits have no context", "leave --off-cpu out, or --weight off-cpu");
    if (weight == "off-cpu" && !a.has(option("off-cpu"))) return wrong_usage("--weight off-cpu needs --off-cpu");
    (void)TRY(unwind_choice(a, unwind_ids(kOptions)));
    if (a.has(option("pid")) && !a.workload().empty())
        return wrong_usage("--pid and -- COMMAND exclude each other",
                           "with -- COMMAND, rawbpf traces only the command and what it starts");
    TRY(check_no_children(a, option("no-children"), option("pid"), false));
    (void)TRY(ring_bytes(a, option("ring")));
    TRY(check_ready_fd(a, option("ready-fd")));
    TRY(check_as_root(a, option("as-root")));
    return place_command_output(a, option("command-output"), a.text(option("format")), a.text(option("output")));
}

class Run {
  public:
    Run(const Arguments &a, Output &output, int command_output, processes::DebugInfo *debug_info)
        : a_(a), output_(output), session_(observed(a, kObservedIds, command_output)), debug_info_(debug_info),
          names_({a.has(option("lines")), a.has(option("inline"))}, debug_info) {}

    Result<void> run() {
        if (a_.has(option("verbose"))) { // before the runs of all programs are counted, which takes longer than a tail call
            const Result<double> ns = custom::tail_call_ns();
            tail_call_ = ns ? format("a tail call takes {}{:.1f} ns here", *ns < 0.1 ? "less than " : "", std::max(*ns, 0.1))
                            : format("a tail call couldn't be measured: {}", ns.error().message());
        }
        Starting starting(std::string(kWho), a_.has(option("quiet")));
        TRY(open());
        processes::Following &following = names_.following();
        if (const UnwindProgramOptions *program = tracer_->unwinds())
            TRY(following.unwind(tracer_->generic_object(), unwind_.memory, *program));
        if (following.unwinds() && !a_.workload().empty()) following.prepare(a_.workload());
        TRY(session_.open());
        if (session_.child() >= 0) {
            following.symbols().set_owner(session_.owner());
            TRY(tracer_->follow(session_.child()));
        }
        const std::vector<int> pids = a_.pids(option("pid"));
        Result<void> watched =
            pids.empty() ? following.watch(session_.child()) : following.watch(pids, !a_.has(option("no-children")));
        if (!watched) {
            if (session_.child() >= 0) return in_words(std::move(watched), "following what the command starts");
            if (!pids.empty()) return in_words(std::move(watched), "following what the processes start");
            note(format("processes that end early may go without names: {}", watched.error().message()));
        }
        const size_t cpus = TRY(online_cpus()).size();
        start_ns_ = sys::monotonic_ns();
        run_ = session::describe_run(own_command_line({"rawbpf", "custom"}, a_), RAWBPF_VERSION, cpus, start_ns_);
        TRY(tracer_->attach());
        starting.over();
        if (a_.has(option("verbose"))) {
            for (const std::string &step : tracer_->steps()) say(format("{}: {}\n", kWho, step));
            say(format("{}: {}\n", kWho, tail_call_));
        }
        for (const std::string &text : tracer_->notes()) note(text);
        custom::ViewOptions shown;
        shown.format = custom::rendered(a_.text(option("format")));
        shown.json = a_.text(option("format")) == "json";
        shown.color = a_.text(option("output")).empty() && color_wanted(a_.text(option("color")), 1);
        if (tracer_->unwinds()) shown.depth = std::min(unwind_.depth, shown.depth);
        using Weight = custom::ViewOptions::Weight;
        const std::string_view weight = a_.text(option("weight"));
        shown.weight = weight == "context" ? Weight::context : weight == "off-cpu" ? Weight::off_cpu : Weight::count;
        shown.off_cpu = a_.has(option("off-cpu"));
        shown.origins = a_.has(option("freq")) || shown.off_cpu;
        shown.guarded = tracer_->guarded();
        view_.emplace(shown, names_, run_, start_ns_, output_.writer());
        TRY(output_.empty());
        output_.keep();
        TRY(view_->start());
        if (!a_.workload().empty()) following.first_steps();
        TRY(session_.go());
        TRY(loop());
        following.end_first_steps();
        PrintingRest rest(std::string(kWho), "traces", a_.has(option("quiet")));
        Result<void> finished =
            tracer_->finish([&](const custom::CustomTrace &trace) { take(trace); },
                            [&] { return view_->flush(sys::monotonic_ns()).has_value() && rest.go_on(tracer_->waiting()); });
        ending_ = session_.end();
        TRY(outcome());
        return finished; // what came is shown all the same
    }

  private:
    static Result<void> in_words(Result<void> failed, std::string_view phrase) {
        return Unexpected(in_context(std::move(failed).error(), phrase));
    }

    // Everything that can be wrong before anything runs.
    Result<void> open() {
        custom::CustomOptions options;
        options.unwind = unwind_ = TRY(unwind_choice(a_, unwind_ids(kOptions)));
        options.copies = true;
        options.backlog = TRY(backlog_bytes(a_, option("backlog")));
        options.thread = true;
        if (const uint32_t ring = TRY(ring_bytes(a_, option("ring")))) options.ring_bytes = ring;
        options.sample_hz = a_.count(option("freq"));
        options.off_cpu = a_.has(option("off-cpu"));
        options.follow_only = !a_.workload().empty();
        custom::ExternalOptions where;
        if (!a_.operands().empty()) where.target = a_.operands()[0];
        std::optional<ObjectFile> object;
        if (a_.has(option("object"))) {
            object = TRY(open_object(a_.text(option("object"))));
            options.kinds = custom::kinds_of(object->spec);
        }
        if (a_.has(option("pin"))) options.kinds = {custom::Kind::probe, custom::Kind::perf_event, custom::Kind::tracepoint};
        tracer_ = TRY(custom::CustomTracer::open(options));
        if (object)
            TRY(tracer_->load_external(std::move(object->spec), where));
        else if (!where.target.empty())
            TRY(tracer_->add_function(where.target, static_cast<int>(a_.count(option("arg")))));
        if (a_.has(option("pin"))) TRY(tracer_->pin(std::string(a_.text(option("pin")))));
        return {};
    }

    void note(std::string_view text) const {
        if (!a_.has(option("quiet"))) say(format("{}: {}\n", kWho, text));
    }

    void take(const custom::CustomTrace &trace) {
        if (names_.wanted(trace.head))
            view_->trace(trace);
        else
            ++filtered_;
    }

    // The line of totals, at most once a second, when there is news.
    void totals(uint64_t now) {
        if (a_.has(option("quiet")) || a_.text(option("format")) != "text") return;
        if (now - told_ns_ < kSecond || view_->shown() == told_) return;
        told_ns_ = now;
        told_ = view_->shown();
        say(format("{}\n", view_->totals()));
    }

    Result<void> loop() {
        session::RunLoop &loop = session_.loop();
        TRY(loop.add(tracer_->poll_fd()));
        TRY(names_.following().add_to(loop.epoll(), 0));
        told_ns_ = session_.armed_ns();
        for (;;) {
            (void)tracer_->may_sleep(); // gives back what was read; what lies in the ring already can wait for the tick
            if (!TRY(loop.wait(tracer_->waiting() ? 0 : names_.following().wait_ms(kTickMs)))) return {};
            TRY(names_.following().tick([&] {
                tracer_->poll([&](const custom::CustomTrace &trace) { take(trace); }, kAtOnce);
                names_.following().behind(tracer_->oldest_ns());
            }));
            TRY(view_->flush(sys::monotonic_ns()));
            totals(sys::monotonic_ns());
            if (TRY(loop.over())) return {};
        }
    }

    Result<void> outcome() {
        const custom::Counts counts = TRY(tracer_->counts());
        view_->drain();
        Ledger ledger = custom::ledger_of(*tracer_, counts, view_->shown(), filtered_);
        ledger.degraded = view_->degraded();
        ledger.stack_ends = view_->stack_ends();
        render::RunCost cost;
        cost.seconds = session_.seconds();
        cost.bpf_runs = tracer_->cost().runs;
        cost.bpf_ns = tracer_->cost().ns;
        cost.table_bytes = names_.following().stats().pool_bytes;
        cost.cpu_seconds = static_cast<double>(session_.cpu_ns()) / 1e9;
        cost.advice = names_.advice(unwind_.by);
        ledger.cost = cost;
        TRY(view_->finish(ledger));
        if (a_.has(option("quiet"))) return {};
        say(format("{}\n", view_->totals()));
        std::string text;
        append_advice(text, kWho, cost.advice);
        say(text + render::ledger_text(kWho, run_, ledger, cost, "trace"));
        if (counts.cleared)
            note(format("{} contexts in custom_context_map were taken away: their threads were preempted before they jumped. "
                        "custom_context_by_thread has no such losses",
                        counts.cleared));
        if (tracer_->cost().recursion_misses)
            note(format("{} more weren't seen: a BPF program was running on that CPU already", tracer_->cost().recursion_misses));
        if (names_.following().events_lost())
            note(format("{} process events were lost: some names may be missing", names_.following().events_lost()));
        for (const std::string &warning : names_.following().warnings()) note(warning);
        if (debug_info_)
            for (const std::string &warning : debug_info_->warnings()) note(warning);
        say_ending(kWho, a_, ending_);
        return {};
    }

    const Arguments &a_;
    Output &output_;
    session::Session session_;
    processes::DebugInfo *debug_info_;
    UnwindChoice unwind_;
    std::unique_ptr<custom::CustomTracer> tracer_; // whose maps the names' tables are put into
    custom::Names names_;
    std::optional<custom::View> view_;
    RunInfo run_;
    uint64_t start_ns_ = 0, filtered_ = 0, told_ = 0, told_ns_ = 0;
    std::string ending_, tail_call_;
};

int run_custom_command(const Arguments &a) {
    const Result<CommandOutput> command_output = check(a);
    if (!command_output) return complain(kWho, command_output.error(), 2);
    const std::optional<render::Format> rendered = render::format_named(a.text(option("format")));
    if (rendered && render::is_json(*rendered) && !render::writes_json())
        return complain(kWho, make_error(Errc::unsupported, "this build writes no JSON"));
    Result<std::unique_ptr<processes::DebugInfo>> debug_info = debug_info_for(a, lines_ids(kOptions));
    if (!debug_info) return complain(kWho, debug_info.error(), 3);
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    stop_on_signals();
    Result<void> done = Run(a, *output, command_output->fd, debug_info->get()).run();
    if (!done) {
        if (reader_gone(done.error())) return 0;
        return complain(kWho, done.error(), done.error().kind == Errc::invalid_argument ? 1 : 0);
    }
    return 0;
}

} // namespace

const Command kCustom{
    .name = "custom",
    .summary = "show stacks with a number of your own (the context): any BPF program can jump into the profiler",
    .description =
        "An external BPF program stores a number, the context, and jumps (bpf_tail_call) to a generic program, which captures "
        "the stack and sends both. The context is whatever tells one call from another: a request's id, a size.\n\n"
        "By default rawbpf uses a built-in external program: it runs at FUNCTION of the file TARGET, and the context is the "
        "function's argument --arg. With --object it uses yours: rawbpf puts the generic program into each of its empty prog "
        "arrays, and replaces its maps custom_context_by_thread (hash, u64 pid_tgid -> u64, 10240 entries) and "
        "custom_context_map (per-CPU array of one u64) by its own; programs whose sections don't say where to attach are "
        "attached at TARGET:FUNCTION. With --pin, programs of any loader can join while rawbpf runs.\n\n"
        "A context in the map by thread always belongs to its thread. A context in the per-CPU map could be another thread's, if "
        "a thread is preempted before it jumps; rawbpf removes such contexts at the context switch and counts the trace as "
        "lost.\n\n"
        "rawbpf walks user stacks by unwind tables (--unwind), so code without frame pointers has complete stacks.\n\n"
        "The hash is made from the files and offsets of all frames up to main(): the same stack has the same hash in every run. "
        "With -- COMMAND, rawbpf shows only that command and what it starts.\n\n"
        "Formats: text and json show one trace at a time; folded, svg and top count equal stacks; pprof has the contexts as "
        "labels; perf-script, speedscope and firefox are for other tools.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "TARGET:FUNCTION",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .workload = true,
    .run = run_custom_command,
};

} // namespace rawbpf::inline v0::cli
