// `rawbpf trace`: probes in, events out. The tracing itself is in programs/trace.
#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/formats.h"
#include "cli/lines.h"
#include "cli/run_words.h"
#include "cli/running.h"
#include "cli/starting.h"
#include "cli/trace_export.h"
#include "cli/trace_groups.h"
#include "cli/trace_options.h"
#include "programs/render/json_line.h"
#include "programs/render/ledger.h"
#include "programs/render/text.h"
#include "programs/trace/run.h"
#include "programs/usdt/print.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {

using namespace tracing;

namespace {

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
    {"sudo rawbpf trace syscall:openat --label trace_id -p 1234", "which request opens which file"},
    {"sudo rawbpf trace syscall:openat --record - -d 10 | ssh host rawbpf report -", "record here, show it there"},
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

// What only the places can tell: whether the wanted form is possible.
Result<void> check_places(const Arguments &a, const std::vector<trace::ProbeSite> &places) {
    if (wants_spans(a, kSpanIds)) TRY(check_span_places(places));
    if (!has_call_times(a)) return {};
    const auto returns = [](const trace::ProbeSite &place) {
        return place.kind != trace::ProbeKind::tracepoint && place.kind != trace::ProbeKind::raw_tp &&
               place.kind != trace::ProbeKind::usdt;
    };
    if (std::any_of(places.begin(), places.end(), returns)) return {};
    return wrong_usage("-f folded needs calls that return; tracepoints and USDT probes are points in time",
                       "it shows functions and system calls; -f text, json, chrome and protobuf show these");
}

Result<void> explain(const std::vector<trace::ProbeSite> &places) {
    std::string text;
    for (const trace::ProbeSite &place : places) {
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

// What is said on standard error while it runs.
class News final : public NewsInWords<trace::RunNews> {
  public:
    /// `spans`: nullptr for events.
    News(const Arguments &a, Output &output, SpanRun *spans)
        : NewsInWords(who(a), "events", a.has(option("quiet"))), a_(a), output_(output), spans_(spans) {}

    Result<void> opened(const trace::Tracer &tracer) override {
        TRY(check_places(a_, tracer.places()));
        if (a_.has(option("explain"))) TRY(explain(tracer.places()));
        if (a_.has(option("verbose")))
            say(format("{}: {} places, {} programs\n", who_, tracer.places().size(), tracer.unit().functions.size()));
        if (spans_) TRY(spans_->start());
        return {};
    }
    // Not before: what was in the file stays there when nothing could be attached.
    Result<void> attached() override {
        starting_.over();
        TRY(output_.empty());
        output_.keep();
        return {};
    }

  private:
    const Arguments &a_;
    Output &output_;
    SpanRun *spans_;
};

std::string title_of(const Arguments &a) {
    std::string out = format("Stacks at {}", a.operands().empty() ? std::string_view("USDT probes") : a.operands()[0]);
    if (a.operands().size() > 1) append(out, " and {} more", a.operands().size() - 1);
    return out;
}

Result<std::unique_ptr<render::Renderer>> open_renderer(const Arguments &a, Output &output) {
    render::RenderOptions how;
    how.color = output.is_stdout() && color_wanted(a.text(option("color")), 1);
    how.title = title_of(a);
    const render::Format shape = *render::format_named(a.text(option("format"))); // they have the same names
    return make_renderer(shape, how, output.writer());
}

trace::RunOptions run_options(const Arguments &a, trace::TraceOptions tracer, const Output &output, int command_output) {
    trace::RunOptions out;
    out.tracer = std::move(tracer);
    out.observed = observed(a, kObservedIds, command_output);
    out.view.format = format_of(a);
    out.language_view = language_view(a, option("native"), option("language"));
    out.view.graph = a.has(option("graph"));
    out.view.latency = a.has(option("latency"));
    out.view.quiet = a.has(option("quiet"));
    out.view.source = {a.has(option("lines")), a.has(option("inline"))};
    out.groups = groups_shown(a);
    if (a.text(option("format")) == "text" && output.is_stdout() && is_terminal(1)) out.terminal = 1;
    const std::string name = who(a);
    const std::vector<std::string_view> words = split(name, ' ');
    out.command = own_command_line({words.begin(), words.end()}, a);
    out.version = RAWBPF_VERSION;
    out.title = title_of(a);
    if (a.has(option("record"))) out.record_fd = output.fd();
    return out;
}

void say_end(const Arguments &a, const trace::RunEnd &end, const SpanRun *spans) {
    const std::string name = who(a);
    say_ledger(name, end, "event");
    if (spans) say(spans->ledger_text());
    if (a.has(option("verbose"))) {
        say(end.places);
        say_languages(end);
        if (end.counted) say(format("{}: {} events were counted in the kernel\n", name, render::grouped(end.counted)));
    }
    say_warnings(name, a, end);
}

Result<void> run(const Arguments &a, trace::TraceOptions tracer, Output &output, int command_output, SpanRun *spans,
                 processes::DebugInfo *debug_info) {
    trace::RunOptions options = run_options(a, std::move(tracer), output, command_output);
    std::unique_ptr<render::Renderer> renderer;
    if (counts_stacks(a)) renderer = TRY(open_renderer(a, output));
    options.view.stacks = renderer.get();
    options.view.debug_info = debug_info;
    if (spans) options.view.spans = &spans->options();
    News news(a, output, spans);
    const trace::RunEnd end = TRY(trace::run_trace(std::move(options), output.writer(), news));
    if (!a.has(option("quiet"))) say_end(a, end, spans);
    const Starting ending(who(a), a.has(option("quiet")));
    end.tracer->detach();
    return {};
}

int run_trace_command(const Arguments &a) {
    const Result<CommandOutput> command_output = check(a);
    if (!command_output) return complain(who(a), command_output.error(), 2);
    Result<trace::TraceOptions> options = trace_options(a);
    if (!options) return complain(who(a), options.error(), options_status(options.error()));
    if (a.has(option("verbose")))
        say(memory_text(who(a), format("a ring of {}", render::size_text(options->program.ring_bytes)), options->unwind,
                        options->backlog));
    if (const std::string_view shape = a.text(option("format")); (shape == "json" || shape == "chrome") && !render::writes_json())
        return complain(who(a), make_error(Errc::unsupported, "this build writes no JSON"));
    Result<Output> output = Output::open(a.text(a.has(option("record")) ? option("record") : option("output")));
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
    const Result<void> done = run(a, std::move(*options), *output, command_output->fd, spans.get(), debug_info->get());
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
