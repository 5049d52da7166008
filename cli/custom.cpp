// `rawbpf custom`: other programs' contexts with the stacks they were in. The tracing itself is in programs/custom.
#include <algorithm>
#include <optional>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/custom_weight.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/run_words.h"
#include "cli/running.h"
#include "programs/capture/memory_shares.h"
#include "programs/custom/run.h"
#include "programs/custom/tail_call.h"
#include "programs/custom/view.h"
#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "runtime/base/fail.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr const char *kWho = "rawbpf custom";
constexpr uint64_t kSecond = 1'000'000'000;

constexpr Option kOptions[] = {
    {.name = "arg",
     .letter = 'a',
     .kind = OptionKind::count,
     .argument = "N",
     .help = "which argument of the function is the context; the first one is 0",
     .section = "What to trace",
     .fallback = "0",
     .excludes = "external",
     .most = 7},
    {.name = "object",
     .kind = OptionKind::file,
     .argument = "OBJ",
     .help = "use your own BPF programs, from this object file, instead of the built-in one: they store a context and jump "
             "through a prog array",
     .excludes = "external"},
    {.name = "pin",
     .kind = OptionKind::directory,
     .argument = "DIR",
     .help = "for programs of another loader: pin custom__generic, custom_context_by_thread and so on in DIR, on a bpf file "
             "system, until rawbpf ends"},
    {.name = "freq",
     .letter = 'F',
     .kind = OptionKind::count,
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
    kNativeOption,
    kLanguageOption,
    label_option(RAWBPF_LABEL_HELP("label each trace with KEY's value; folded, svg and top tell stacks apart by it",
                                   ". Traces of programs that capture by themselves have none")),
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
    weight_option(
        "folded, svg, top: what to add up for each stack: how often it came, its contexts, or its nanoseconds off the CPU"),
    kRecordOption,
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
    {"sudo rawbpf custom ./server:handle --record - -d 10 | ssh host rawbpf report -", "record here, show it there"},
    {"sudo rawbpf custom ./copy:copied -f svg --weight context -o x.svg -- ./copy", "bytes by stack, as a flame graph"},
};

constexpr ObservedIds kObservedIds = observed_ids(kOptions);

Result<CommandOutput> check(const Arguments &a) {
    const bool target = !a.operands().empty();
    if (!target && !a.has(option("object")) && !a.has(option("pin")))
        return wrong_usage("TARGET:FUNCTION is missing", "as in ./prog:handle_request; or --object, or --pin");
    if (a.has(option("arg")) && !target) return wrong_usage("--arg is about the function of TARGET:FUNCTION");
    TRY(check_record(a, output_ids(kOptions), lines_ids(kOptions)));
    if (a.has(option("record")) && a.has(option("weight")))
        return wrong_usage("--record shows nothing, and --weight is about what is shown", "rawbpf report FILE has --weight");
    TRY(check_labels(a, option("label"), a.text(option("format"))));
    TRY(check_weight(a, option("weight"), a.text(option("format")), a.has(option("freq")), a.has(option("off-cpu"))));
    (void)TRY(unwind_choice(a, unwind_ids(kOptions)));
    if (a.has(option("pid")) && !a.workload().empty())
        return wrong_usage("--pid and -- COMMAND exclude each other",
                           "with -- COMMAND, rawbpf traces only the command and what it starts");
    TRY(check_no_children(a, option("no-children"), option("pid"), false));
    (void)TRY(ring_bytes(a, option("ring")));
    TRY(check_ready_fd(a, option("ready-fd")));
    TRY(check_as_root(a, option("as-root")));
    return place_command_output(a, output_ids(kOptions));
}

Result<custom::RunOptions> run_options(const Arguments &a, const Output &output, int command_output,
                                       processes::DebugInfo *debug_info) {
    custom::RunOptions out;
    custom::CustomOptions &tracer = out.tracer;
    tracer.unwind = TRY(unwind_choice(a, unwind_ids(kOptions)));
    tracer.labels = label_keys(a, option("label"));
    tracer.copies = true;
    tracer.backlog = TRY(backlog_bytes(a, option("backlog")));
    tracer.thread = true;
    tracer.ring_bytes = static_cast<uint32_t>(memory_shares().events_ring);
    if (const uint32_t ring = TRY(ring_bytes(a, option("ring")))) tracer.ring_bytes = ring;
    tracer.sample_hz = a.count(option("freq"));
    tracer.off_cpu = a.has(option("off-cpu"));
    if (!a.operands().empty()) out.target = a.operands()[0];
    out.argument = static_cast<int>(a.count(option("arg")));
    if (a.has(option("object"))) out.object = RAWBPF_TRY(open_object(a.text(option("object")))).spec;
    out.pin = a.text(option("pin"));
    out.observed = observed(a, kObservedIds, command_output);
    out.children = !a.has(option("no-children"));
    out.view.format = custom::rendered(a.text(option("format")));
    out.view.json = a.text(option("format")) == "json";
    out.view.render.color = a.text(option("output")).empty() && color_wanted(a.text(option("color")), 1);
    out.view.weight = weight_of(a, option("weight"));
    out.language_view = language_view(a, option("native"), option("language"));
    out.detail = {a.has(option("lines")), a.has(option("inline"))};
    out.debug_info = debug_info;
    out.command = own_command_line({"rawbpf", "custom"}, a);
    out.version = RAWBPF_VERSION;
    if (a.has(option("record"))) out.record_fd = output.fd();
    return out;
}

std::string tail_call_text() {
    const Result<double> ns = custom::tail_call_ns();
    return ns ? format("a tail call takes {}{:.1f} ns here", *ns < 0.1 ? "less than " : "", std::max(*ns, 0.1))
              : format("a tail call couldn't be measured: {}", ns.error().message());
}

// What is said on standard error while it runs.
class News final : public NewsInWords<custom::RunNews> {
  public:
    News(const Arguments &a, Output &output)
        : NewsInWords(kWho, "traces", a.has(option("quiet"))), a_(a), output_(output),
          // before the runs of all programs are counted, which takes longer than a tail call
          tail_call_(a.has(option("verbose")) ? tail_call_text() : "") {}

    Result<void> attached(const custom::CustomTracer &tracer) override {
        starting_.over();
        if (a_.has(option("verbose"))) {
            for (const std::string &step : tracer.steps()) say(format("{}: {}\n", kWho, step));
            say(format("{}: {}\n", kWho, tail_call_));
        }
        TRY(output_.empty());
        output_.keep();
        return {};
    }
    // The line of totals, at most once a second, when there is news.
    void progress(const custom::Tally &tally) override {
        const uint64_t now = sys::monotonic_ns();
        if (told_ns_ == 0) told_ns_ = now;
        if (quiet_ || a_.text(option("format")) != "text" || now - told_ns_ < kSecond || tally.shown() == told_) return;
        told_ns_ = now;
        told_ = tally.shown();
        say(format("{}\n", tally.totals()));
    }

  private:
    const Arguments &a_;
    Output &output_;
    std::string tail_call_;
    uint64_t told_ = 0, told_ns_ = 0;
};

void say_end(const Arguments &a, const custom::RunEnd &end) {
    say(format("{}\n", end.totals));
    say_ledger(kWho, end, "trace");
    if (a.has(option("verbose"))) say_languages(end);
    say_warnings(kWho, a, end);
}

Result<void> run(const Arguments &a, Output &output, int command_output, processes::DebugInfo *debug_info) {
    custom::RunOptions options = TRY(run_options(a, output, command_output, debug_info));
    if (a.has(option("verbose")))
        say(memory_text(kWho, format("a ring of {}", render::size_text(options.tracer.ring_bytes)), options.tracer.unwind,
                        options.tracer.backlog));
    News news(a, output);
    const custom::RunEnd end = TRY(custom::run_custom(std::move(options), output.writer(), news));
    if (!a.has(option("quiet"))) say_end(a, end);
    return end.finished; // what came is shown all the same
}

int run_custom_command(const Arguments &a) {
    const Result<CommandOutput> command_output = check(a);
    if (!command_output) return complain(kWho, command_output.error(), options_status(command_output.error()));
    const std::optional<render::Format> rendered = render::format_named(a.text(option("format")));
    if (rendered && render::is_json(*rendered) && !render::writes_json())
        return complain(kWho, make_error(Errc::unsupported, "this build writes no JSON"));
    Result<std::unique_ptr<processes::DebugInfo>> debug_info = nullptr;
    if (!a.has(option("record"))) debug_info = debug_info_for(a, lines_ids(kOptions));
    if (!debug_info) return complain(kWho, debug_info.error(), 3);
    Result<Output> output = Output::open(a.text(a.has(option("record")) ? option("record") : option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    stop_on_signals();
    const Result<void> done = run(a, *output, command_output->fd, debug_info->get());
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
