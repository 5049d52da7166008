// `rawbpf report` of what rawbpf trace and usdt trace recorded: the formats of these two.
#include "cli/report_options.h"

#include <memory>
#include <optional>

#include "cli/console.h"
#include "cli/formats.h"
#include "cli/lines.h"
#include "cli/parts.h"
#include "cli/run_words.h"
#include "cli/running.h"
#include "programs/render/json_line.h"
#include "programs/trace/report.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli::reporting {
namespace {

bool counts_stacks(trace::Format shape, const trace::Settings &recorded) {
    return shape == trace::Format::stacks || (shape == trace::Format::folded && recorded.stack);
}

// What isn't in the recording can't be shown, and what is about samples means nothing here.
Result<void> check(const Arguments &a, std::string_view name, const trace::Settings &recorded) {
    const trace::Format shape = trace::format_named(name);
    if (name == "table" || name == "folded-ext")
        return wrong_usage(format("-f {} shows samples, and this is a recording of calls", name), "-f text shows a line a call");
    if (a.has(option("ps"))) return wrong_usage("--ps is about the table of samples", "leave it out");
    if (recorded.count && (counts_stacks(shape, recorded) || shape == trace::Format::folded || shape == trace::Format::chrome))
        return wrong_usage(format("-f {} shows events, and the recording has only counts", name), "record without --count");
    if (shape == trace::Format::stacks && !recorded.stack)
        return wrong_usage(format("-f {} counts stacks, and the recording has none", name), "record with --stack");
    if (shape == trace::Format::folded && !recorded.stack && !(recorded.returns && recorded.calls))
        return wrong_usage("-f folded needs the times of calls, or stacks, and the recording has neither",
                           "record with --returns, or with --stack");
    if ((name == "pprof" || name == "protobuf") && (a.text(option("output")).empty() || a.text(option("output")) == "-") &&
        is_terminal(1))
        return wrong_usage(format("-f {} is binary, and standard output is a terminal", name),
                           "write it to a file with -o FILE, or pipe it to another program");
    if ((name == "json" || name == "chrome") && !render::writes_json())
        return Unexpected(make_error(Errc::unsupported, "this build writes no JSON"));
    return {};
}

Result<std::unique_ptr<render::Renderer>> open_renderer(const Arguments &a, std::string_view name,
                                                        const trace::Settings &recorded, Output &output) {
    render::RenderOptions how;
    how.color = output.is_stdout() && color_wanted(a.text(option("color")), 1);
    how.title = a.has(option("title")) ? std::string(a.text(option("title"))) : recorded.title;
    how.icicle = a.has(option("icicle"));
    how.delimiter = a.has(option("delimiter"));
    how.threads = a.has(option("per-thread"));
    return make_renderer(*render::format_named(name), how, output.writer());
}

Result<trace::ReportEnd> show(const Arguments &a, std::string_view name, trace::Report &report, Output &output) {
    const trace::Settings &recorded = report.settings();
    trace::ViewOptions how;
    how.format = trace::format_named(name);
    how.graph = recorded.graph && name == "text";
    how.latency = recorded.latency;
    how.quiet = a.has(option("quiet"));
    how.source = {a.has(option("lines")), a.has(option("inline"))};
    std::unique_ptr<render::Renderer> renderer;
    if (counts_stacks(how.format, recorded)) {
        renderer = TRY(open_renderer(a, name, recorded, output));
        how.stacks = renderer.get();
        how.threads_apart = a.has(option("per-thread")) || !render::aggregates(*render::format_named(name));
    }
    const std::unique_ptr<processes::DebugInfo> debug_info = TRY(debug_info_for(a, lines_ids(kOptions)));
    how.debug_info = debug_info.get();
    TRY(output.empty());
    output.keep();
    return report.show(how, std::string(a.text(option("symfs"))), output.writer());
}

int report(const Arguments &a, const InputFile &recording) {
    const std::string_view name = a.has(option("format")) ? a.text(option("format")) : std::string_view("text");
    Result<std::unique_ptr<trace::Report>> opened = trace::Report::open(recording.bytes(), recording.name());
    if (!opened) return complain(kWho, opened.error(), 1);
    if (Result<void> checked = check(a, name, (*opened)->settings()); !checked)
        return complain(kWho, checked.error(), checked.error().kind == Errc::unsupported ? 3 : 2);
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    const Result<trace::ReportEnd> end = show(a, name, **opened, *output);
    if (!end) return reader_gone(end.error()) ? 0 : complain(kWho, end.error());
    if (!a.has(option("quiet"))) {
        say_ledger(kWho, *end, "event");
        if (a.has(option("verbose"))) say(end->places);
    }
    for (const std::string &warning : end->warnings) say(format("{}: warning: {}\n", kWho, warning));
    return end->unread ? 1 : 0;
}

} // namespace

int report_trace(const Arguments &a, const InputFile &recording) {
    if constexpr (has(Part::trace) || has(Part::usdt))
        return report(a, recording);
    else
        return complain(kWho, left_out(Part::trace, recording.name()));
}

} // namespace rawbpf::inline v0::cli::reporting
