// `rawbpf trace`: probes in, events out. The tracing itself is in programs/trace.
#include <algorithm>
#include <bit>
#include <csignal>
#include <optional>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/formats.h"
#include "cli/lines.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "cli/trace_export.h"
#include "cli/trace_groups.h"
#include "cli/trace_options.h"
#include "cli/view.h"
#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/run_cost.h"
#include "programs/render/text.h"
#include "programs/session/run_info.h"
#include "programs/session/session.h"
#include "programs/trace/tracer.h"
#include "programs/trace/view.h"
#include "programs/usdt/print.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/loader.h"
#include "runtime/sys/clock.h"
#include "runtime/sys/cpus.h"
#include "runtime/sys/file.h"
#include "runtime/sys/machine.h"
#include "runtime/sys/process.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {

using namespace tracing;

namespace {

constexpr int kTickMs = 50;
constexpr size_t kAtOnce = 8192; // events that are shown before anything else is looked at
constexpr std::string_view kNoRoomForStacks =
    "the kernel couldn't count the stacks of some events, as most stacks were new, and they came faster than rawbpf could read "
    "them: --ring SIZE gives them more room, --filter and --sample leave some out";
constexpr uint64_t kRedrawNs = 1'000'000'000;

constexpr Example kExamples[] = {
    {"sudo rawbpf trace vfs_read vfs_write -- cat /etc/passwd", "kernel functions, with their arguments, while a command runs"},
    {"sudo rawbpf trace uprobe:./prog:'work_*' --graph -- ./prog", "who calls whom in a program, and how long it takes"},
    {"sudo rawbpf trace 'uprobe:./svc:main.Handle' --sig '(id int, key string)'", "a Go function, by Go's convention"},
    {"sudo rawbpf trace 'uprobe:./service:main.(*srv).*' -r", "functions of a Go program, and what they return"},
    {"sudo rawbpf trace uprobe:./prog:parse+0x42 --stack", "an instruction inside a function, with the stacks that reach it"},
    {"sudo rawbpf trace uprobe:libc:open --sig 'const char*,int' -d 5", "the files that all processes open, for five seconds"},
    {"sudo rawbpf trace 'tcp_*' --count -d 3", "how often each of these functions is called"},
    {"sudo rawbpf trace vfs_read --by comm --count --hist ret -d 5", "who reads how often, and how much: added up in the kernel"},
    {"sudo rawbpf trace syscall:futex --by stack --hist duration -p 1234", "which callers wait how long in a system call"},
    {"sudo rawbpf trace syscall:openat --errors", "files that couldn't be opened"},
    {"sudo rawbpf trace 'uprobe:./prog:*' -r -f chrome -o prog.json -- ./prog", "a timeline for ui.perfetto.dev"},
    {"sudo rawbpf trace uprobe:libc:malloc --stack -f svg -o malloc.svg -- ./prog", "who allocates, as a flame graph"},
    {"sudo rawbpf trace --list 'tracepoint:sched:*'", "list the tracepoints that match"},
};

constexpr Example kUsdtExamples[] = {
    {"sudo rawbpf usdt trace postgres:postgresql:query__start -d 10", "the queries of a server, for ten seconds"},
    {"sudo rawbpf usdt trace libstdc++.so.6:libstdcxx:throw --stack -- ./server", "where exceptions come from"},
    {"sudo rawbpf usdt trace ./server --otlp http://localhost:4318", "its requests and queries, to an OpenTelemetry receiver"},
    {"sudo rawbpf usdt trace -p 1234 :python --count", "how often each of an interpreter's probes is reached"},
};

constexpr ObservedIds kObservedIds = observed_ids(kOptions);

// "rawbpf trace", "rawbpf usdt trace"
std::string who(const Arguments &a) { return format("rawbpf {}", a.command().name); }

std::string prototype(const trace::ProbeSite &place) {
    std::string out = place.describe();
    const trace::Signature &signature = place.signature;
    if (!signature.known) return out;
    out += '(';
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
        const trace::Parameter &p = signature.parameters[i];
        if (place.go_call && p.is_length) continue; // a word of the value before it
        const std::string &first = place.go_call ? p.name : p.type.name, &second = place.go_call ? p.type.name : p.name;
        append(out, "{}{}{}{}", i ? ", " : "", first, second.empty() || first.ends_with('*') ? "" : " ", second);
    }
    out += signature.variadic ? ", ...)" : ")";
    return out;
}

int list_probes(const std::string &who, const trace::TraceOptions &o, Output &output) {
    std::string text;
    for (const std::string &probe : o.probes) {
        Result<trace::ProbeSpec> spec = trace::parse_probe(probe);
        if (!spec) return complain(who, spec.error(), 2);
        Result<trace::Matched> matched = trace::match_probe(*spec, o.match);
        if (!matched) return complain(who, matched.error());
        for (const trace::ProbeSite &place : matched->places) append(text, "{}\n", prototype(place));
        for (const std::string &note : matched->notes) say(format("{}: {}\n", who, note));
    }
    output.writer().write(text);
    output.keep();
    if (Result<void> written = output.writer().flush(); !written && !reader_gone(written.error()))
        return complain(who, written.error(), 1);
    return 0;
}

class Run {
  public:
    /// `spans`: nullptr for events.
    Run(const Arguments &a, trace::TraceOptions options, Output &output, int command_output, SpanRun *spans,
        processes::DebugInfo *debug_info)
        : a_(a), options_(std::move(options)), output_(output), spans_(spans), debug_info_(debug_info),
          session_(observed(a, kObservedIds, command_output)) {}

    Result<void> run() {
        Starting starting(who_, a_.has(option("quiet")));
        TRY(session_.open());
        options_.workload = session_.child();
        for (int tid : a_.pids(option("tid")))
            if (!sys::process_exists(tid)) return fail(Errc::not_found, "there is no thread {}", tid);
        tracer_ = TRY(trace::Tracer::open(options_));
        TRY(check_places());
        if (a_.has(option("explain"))) TRY(explain());
        if (a_.has(option("verbose")))
            say(format("{}: {} places, {} programs\n", who_, tracer_->places().size(), tracer_->unit().functions.size()));
        const std::vector<std::string_view> words = split(who_, ' ');
        const size_t cpus = TRY(online_cpus()).size();
        start_ns_ = sys::monotonic_ns();
        run_ = session::describe_run(own_command_line({words.begin(), words.end()}, a_), RAWBPF_VERSION, cpus, start_ns_);
        trace::ViewOptions view;
        view.format = format_of(a_);
        if (counts_stacks(a_)) view.stacks = TRY(open_renderer());
        view.threads_apart = options_.threads_apart;
        view.debug_info = debug_info_;
        view.source = {a_.has(option("lines")), a_.has(option("inline"))};
        view.count = a_.has(option("count")) && !wants_groups(a_);
        view.graph = a_.has(option("graph"));
        view.calls = options_.program.calls;
        view.returns = options_.program.results && options_.program.calls;
        view.stack = options_.program.stack;
        view.group_stacks = groups_by_stack(a_);
        view.latency = a_.has(option("latency"));
        view.quiet = a_.has(option("quiet")) || wants_groups(a_);
        if (spans_) {
            view.spans = &spans_->options();
            TRY(spans_->start());
        }
        if (Result<std::shared_ptr<const btf::Btf>> kernel = kernel_btf()) kernel_ = std::move(*kernel);
        view_.emplace(view, tracer_->places(), run_, kernel_.get(), start_ns_, output_.writer());
        const bool on_terminal = a_.text(option("format")) == "text" && output_.is_stdout() && is_terminal(1);
        if (wants_groups(a_)) {
            trace::GroupsShown shown = groups_shown(a_);
            if (on_terminal) shown.terminal = 1;
            groups_.emplace(shown, *tracer_, *view_, run_, kernel_.get(), output_.writer(), start_ns_);
        }
        live_ = view.count && on_terminal;
        TRY(output_.empty());
        output_.keep();
        TRY(view_->start());
        processes::Following &following = view_->following();
        if (const UnwindProgramOptions *program = tracer_->unwinds())
            TRY(following.unwind(tracer_->object(), options_.unwind.memory, *program));
        if (!a_.workload().empty()) following.symbols().set_owner(session_.owner());
        if (view_->wants_watch(session_.child()))
            if (Result<void> watched = following.watch(session_.child()); !watched)
                note(format("code of processes that end early may go without names: {}", watched.error().message()));
        TRY(view_->count_in_kernel(*tracer_));
        if (following.unwinds()) { // tables are there before the first event
            following.prepare(a_.workload());
            for (int pid : a_.pids(option("pid"))) TRY(following.want(static_cast<uint32_t>(pid)));
            TRY(following.tick());
        }
        TRY(tracer_->attach());
        starting.over();
        for (const std::string &text : tracer_->notes()) note(text);
        if (session_.child() >= 0 && following.unwinds()) following.first_steps();
        TRY(session_.go());
        if (groups_) groups_->begin(session_.armed_ns());
        TRY(loop());
        following.end_first_steps();
        PrintingRest rest(who_, "events", a_.has(option("quiet")));
        TRY(tracer_->finish([&](const trace::Event &event) { show(event); },
                            [&] { return view_->flush(sys::monotonic_ns()).has_value() && rest.go_on(tracer_->waiting()); }));
        view_->drain();
        TRY(view_->stop_counting());
        see_open_calls(); // before the command is ended with them
        ending_ = session_.end();
        TRY(outcome());
        const Starting ending(who_, a_.has(option("quiet")));
        tracer_->detach();
        return {};
    }

  private:
    [[nodiscard]] Result<void> explain() const {
        std::string text;
        for (const trace::ProbeSite &place : tracer_->places()) {
            if (place.kind != trace::ProbeKind::usdt) continue;
            render::append_printable(text, place.describe());
            append(text, " at offset {:#x}\n", place.address);
            usdt::append_explanation(text, place.arguments, usdt::explain_argument);
        }
        if (text.empty())
            return wrong_usage("--explain is about the arguments of USDT probes, and there are none", "usdt:FILE:PROVIDER:NAME");
        say(text);
        return {};
    }

    Result<render::Renderer *> open_renderer() {
        render::RenderOptions how;
        how.color = output_.is_stdout() && color_wanted(a_.text(option("color")), 1);
        how.title = format("Stacks at {}", a_.operands().empty() ? std::string_view("USDT probes") : a_.operands()[0]);
        if (a_.operands().size() > 1) append(how.title, " and {} more", a_.operands().size() - 1);
        const render::Format shape = *render::format_named(a_.text(option("format"))); // they have the same names
        renderer_ = TRY(make_renderer(shape, how, output_.writer()));
        return renderer_.get();
    }

    // What only the places can tell: whether the wanted form is possible.
    [[nodiscard]] Result<void> check_places() const {
        if (spans_) TRY(check_span_places(tracer_->places()));
        if (!has_call_times(a_)) return {};
        const auto returns = [](const trace::ProbeSite &place) {
            return place.kind != trace::ProbeKind::tracepoint && place.kind != trace::ProbeKind::raw_tp &&
                   place.kind != trace::ProbeKind::usdt;
        };
        const std::vector<trace::ProbeSite> &places = tracer_->places();
        if (std::any_of(places.begin(), places.end(), returns)) return {};
        return wrong_usage("-f folded needs calls that return; tracepoints and USDT probes are points in time",
                           "it shows functions and system calls; -f text, json, chrome and protobuf show these");
    }

    void note(std::string_view text) const {
        if (!a_.has(option("quiet"))) say(format("{}: {}\n", who_, text));
    }

    void show(const trace::Event &event) {
        if (event.header.what == trace::What::exec) return view_->event(event); // nothing that was asked for
        if (most_ != 0 && events_ >= most_) return;
        ++events_;
        view_->event(event);
    }

    Result<void> loop() {
        most_ = a_.has(option("max-events")) ? a_.count(option("max-events")) : 0;
        session::RunLoop &loop = session_.loop();
        if (tracer_->poll_fd() >= 0) TRY(loop.add(tracer_->poll_fd()));
        processes::Following &following = view_->following();
        TRY(following.add_to(loop.epoll(), 0));
        drawn_ns_ = session_.armed_ns();
        for (;;) {
            if (!TRY(loop.wait(tracer_->may_sleep() ? following.wait_ms(kTickMs) : 0))) return {};
            TRY(following.tick([&] {
                tracer_->poll([&](const trace::Event &event) { show(event); }, kAtOnce);
                following.behind(tracer_->oldest_ns());
            }));
            TRY(view_->flush(sys::monotonic_ns()));
            if (spans_ && spans_->is_scraped() && sys::monotonic_ns() - counted_ns_ >= kRedrawNs) {
                uint64_t lost = 0;
                for (const trace::PlaceCounts &place : TRY(tracer_->counts())) lost += place.lost();
                spans_->set_lost_events(lost);
                counted_ns_ = sys::monotonic_ns();
            }
            if (groups_) TRY(groups_->tick(sys::monotonic_ns()));
            if (live_ && sys::monotonic_ns() - drawn_ns_ >= kRedrawNs) {
                const sys::TerminalSize size = sys::terminal_size(1);
                TRY(view_->redraw(TRY(tracer_->counts()), static_cast<uint32_t>(size.rows), static_cast<uint32_t>(size.columns)));
                drawn_ns_ = sys::monotonic_ns();
            }
            if (most_ != 0 && events_ >= most_) return {};
            if (TRY(loop.over())) return {};
        }
    }

    // A call that goes on has no return yet: its line is as incomplete as that of one that never will.
    void see_open_calls() {
        for (const auto &[caller, open] : view_->calls().still_open())
            (sys::process_exists(static_cast<int>(trace::Event::thread_of(caller))) ? goes_on_ : ended_) += open;
    }

    Result<void> outcome() {
        std::vector<trace::PlaceCounts> counts = TRY(tracer_->counts());
        Ledger ledger;
        uint64_t ring_full = 0, backlog_full = 0, left_out = 0, shown = 0;
        for (const trace::PlaceCounts &place : counts) {
            ledger.fired += place.counts.fired;
            ledger.filtered += place.counts.filtered;
            ledger.sampled_out += place.counts.sampled_out;
            ring_full += place.counts.lost;
            backlog_full += place.backlog_full;
            left_out += place.left_out;
            shown += place.shown;
        }
        ledger.shown = shown;
        ledger.lost = {
            {groups_ ? "map_full" : "ring_full", ring_full}, {"backlog_full", backlog_full}, {"stopped_by_signal", left_out}};
        if (most_ != 0 && shown > events_) { // beyond --max-events
            ledger.shown = events_;
            ledger.lost.emplace_back("after_max_events", shown - events_);
        }
        const trace::StackCounts *stacks = view_->stack_counts();
        if (stacks && stacks->unknown()) ledger.lost.emplace_back("unknown_stack", stacks->unknown());
        if (tracer_->malformed()) ledger.lost.emplace_back("malformed", tracer_->malformed());
        view_->drain();
        if (view_->unreadable()) ledger.degraded.emplace_back("argument_unreadable", view_->unreadable());
        if (view_->stacks_unreadable()) ledger.degraded.emplace_back("user_stack_unreadable", view_->stacks_unreadable());
        const std::pair<const char *, uint64_t> incomplete[] = {
            {"return_missed", view_->calls().missed_returns()},   // left by longjmp() or an exception, or its record was lost
            {"call_goes_on", goes_on_},                           // when the trace ends
            {"thread_ended_in_call", ended_},                     // exit(), a signal
            {"began_another_program", view_->calls().replaced()}, // execve()
            {"nested_too_deep", view_->calls().too_deep()},       // the kernel watches 64 returns of a thread
            {"call_missed", view_->calls().missed_calls()},       // it began before the trace, or in the parent of a fork
        };
        for (const auto &[reason, n] : incomplete)
            if (n) ledger.degraded.emplace_back(reason, n);
        ledger.stack_ends = view_->stack_ends().list();
        render::RunCost cost;
        cost.seconds = session_.seconds();
        cost.bpf_runs = tracer_->cost().runs;
        cost.bpf_ns = tracer_->cost().ns;
        cost.cpu_seconds = static_cast<double>(session_.cpu_ns()) / 1e9;
        cost.table_bytes = view_->following().stats().pool_bytes;
        cost.advice = view_->advice(options_.unwind.by);
        ledger.cost = cost;
        if (groups_) TRY(groups_->finish(sys::monotonic_ns()));
        TRY(view_->finish(counts, ledger));
        TRY(output_.writer().flush());
        if (a_.has(option("quiet"))) return {};
        std::string text;
        append_advice(text, who_, cost.advice);
        say(text + render::ledger_text(who_, run_, ledger, cost, "event"));
        if (spans_) say(spans_->ledger_text());
        if (a_.has(option("verbose"))) say(trace::places_ledger(view_->names(), trace::merge_sites(tracer_->places(), counts)));
        if (stacks && stacks->counted() && a_.has(option("verbose")))
            note(format("{} events were counted in the kernel", render::grouped(stacks->counted())));
        if (stacks && ring_full) note(kNoRoomForStacks);
        if (groups_ && ring_full)
            note(format("there was room for {} groups, and {} events belonged to others: --keys N makes more room",
                        render::grouped(tracer_->group_layout()->keys), render::grouped(ring_full)));
        for (const std::string &warning : view_->warnings()) note(warning);
        if (debug_info_)
            for (const std::string &warning : debug_info_->warnings()) note(warning);
        if (tracer_->cost().recursion_misses)
            say(format("{}: {} more weren't seen: a BPF program was running on that CPU already\n", who_,
                       tracer_->cost().recursion_misses));
        say_ending(who_, a_, ending_);
        return {};
    }

    const Arguments &a_;
    const std::string who_ = who(a_);
    trace::TraceOptions options_;
    Output &output_;
    SpanRun *spans_;
    processes::DebugInfo *debug_info_;
    std::unique_ptr<render::Renderer> renderer_;
    session::Session session_;
    std::unique_ptr<trace::Tracer> tracer_;
    std::shared_ptr<const btf::Btf> kernel_;
    std::optional<trace::View> view_;
    std::optional<trace::GroupRun> groups_; ///< events are put into groups
    RunInfo run_;
    uint64_t start_ns_ = 0, events_ = 0, most_ = 0, drawn_ns_ = 0, counted_ns_ = 0;
    uint64_t goes_on_ = 0, ended_ = 0; ///< calls that are open at the end
    bool live_ = false;                ///< the counts are drawn on a terminal while they grow
    std::string ending_;
};

int run_trace_command(const Arguments &a) {
    const Result<CommandOutput> command_output = check(a);
    if (!command_output) return complain(who(a), command_output.error(), 2);
    Result<trace::TraceOptions> options = trace_options(a);
    if (!options) return complain(who(a), options.error(), 2);
    if (const std::string_view shape = a.text(option("format")); (shape == "json" || shape == "chrome") && !render::writes_json())
        return complain(who(a), make_error(Errc::unsupported, "this build writes no JSON"));
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(who(a), output.error(), 1);
    if (a.has(option("list"))) return list_probes(who(a), *options, *output);
    std::unique_ptr<SpanRun> spans;
    if (wants_spans(a, kSpanIds)) {
        Result<std::unique_ptr<SpanRun>> prepared = SpanRun::prepare(a, kSpanIds, who(a));
        if (!prepared) return complain(who(a), prepared.error(), prepared.error().kind == Errc::invalid_argument ? 2 : 0);
        spans = std::move(*prepared);
    }
    Result<std::unique_ptr<processes::DebugInfo>> debug_info = nullptr;
    if (wants_stacks(a) || groups_by_stack(a)) debug_info = debug_info_for(a, lines_ids(kOptions));
    if (!debug_info) return complain(who(a), debug_info.error(), 3);
    stop_on_signals();
    Result<void> done = Run(a, std::move(*options), *output, command_output->fd, spans.get(), debug_info->get()).run();
    if (!done) {
        if (reader_gone(done.error())) return 0;
        return complain(who(a), done.error(), done.error().kind == Errc::invalid_argument ? 1 : 0);
    }
    return spans ? spans->status() : 0;
}

} // namespace

const Command kTrace{
    .name = "trace",
    .summary = "trace calls of functions, system calls and tracepoints, with their arguments",
    .description =
        "Attaches to functions of the kernel and of programs, to tracepoints and to system calls, and shows each call with its "
        "arguments. Their names and types come from the kernel's BTF or from --sig. Filters run in the kernel.\n\n"
        "A PROBE is kprobe:GLOB, kretprobe:GLOB, fentry:GLOB, fexit:GLOB, uprobe:PATH:GLOB, uretprobe:PATH:GLOB, "
        "tracepoint:CATEGORY:GLOB, raw_tp:NAME, syscall:GLOB or usdt:FILE:PROVIDER:NAME. A GLOB alone means functions of the "
        "kernel; rawbpf attaches in the best way that this kernel has, and says which. kprobe:NAME+OFFSET and "
        "uprobe:PATH:NAME+OFFSET attach inside a function, at the instruction OFFSET bytes (16, 0x10) after its beginning; the "
        "arguments shown are then the current values of the registers in which the function got its arguments. System calls of "
        "32-bit programs have numbers of their own and aren't shown.\n\n"
        "With -- COMMAND, rawbpf runs the command, traces it and everything that it starts, from the first instruction on, and "
        "ends when the command ends. With --pid it ends when the last of those processes ends.\n\n"
        "Formats: chrome is for ui.perfetto.dev and chrome://tracing (with --returns each call is a bar); folded has each "
        "function's own time in nanoseconds by call path, for flame graph tools; protobuf is a series of length-delimited "
        "records, whose schema is installed as share/rawbpf/trace.proto. With --stack, folded counts how often each stack came. "
        "svg (a flame graph), top (a table), pprof, perf-script, speedscope and firefox count stacks too; they turn on --stack "
        "by themselves.\n\n"
        "With --spans, --otlp or --prometheus rawbpf makes spans of events: a call and its return are a span, and so are a probe "
        "that begins something and the probe that ends it. --otlp sends spans by OTLP/HTTP and reads OpenTelemetry's variables "
        "(OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _PROTOCOL, _ENDPOINT), which sudo "
        "passes on with -E only. While the receiver takes no spans, they wait in a bounded queue; if spans were lost, the exit "
        "status is 1.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "PROBE",
    .least_operands = 1,
    .most_operands = 1000,
    .operand_kind = "probes",
    .workload = true,
    .run = run_trace_command,
};

const Command kUsdtTrace{
    .name = "usdt trace",
    .summary = "trace the USDT probes of programs and libraries, with their arguments",
    .description =
        "Attaches to the USDT probes of a program or library and shows each hit of a probe with its arguments. TARGET is FILE, "
        "FILE:PROVIDER or FILE:PROVIDER:NAME, with * and ? as in a shell; if FILE has no slash, rawbpf searches for it as the "
        "dynamic linker or the shell does. With -p PID, FILE may be left out: rawbpf then searches all files that the process "
        "has mapped. The command is short for rawbpf trace usdt:TARGET.\n\n"
        "If a probe has a semaphore, the kernel raises it, and drops it again however the command ends. rawbpf knows the names "
        "and types of the arguments of PostgreSQL, Python, Ruby, PHP, HotSpot, libstdc++, libvirt and the Go fork that has such "
        "probes; --types adds others. An argument that no BPF program can fetch is shown as ?.\n\n"
        "With --spans, --otlp or --prometheus rawbpf makes spans of pairs of probes: X__start or X_start with X__done, X_end and "
        "the like, and the known pairs of the programs above. It matches them by thread or, in Go, by goroutine. It reads "
        "OpenTelemetry's variables (OTEL_SERVICE_NAME, OTEL_EXPORTER_OTLP_HEADERS ...), which sudo passes on with -E only. While "
        "the receiver takes no spans, they wait in a bounded queue; if some were lost, the exit status is 1.",
    .options = kOptions,
    .examples = kUsdtExamples,
    .operand = "TARGET",
    .least_operands = 0,
    .most_operands = 1000,
    .operand_is_file = true,
    .workload = true,
    .run = run_trace_command,
};

} // namespace rawbpf::inline v0::cli
