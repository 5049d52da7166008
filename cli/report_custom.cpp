// `rawbpf report` of what rawbpf custom recorded: its formats.
#include <memory>

#include "cli/built.h"
#include "cli/console.h"
#include "cli/custom_weight.h"
#include "cli/lines.h"
#include "cli/parts.h"
#include "cli/report_options.h"
#include "cli/run_words.h"
#include "cli/running.h"
#include "programs/custom/report.h"
#include "programs/render/json_line.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli::reporting {
namespace {

bool shows_traces(std::string_view name) {
    for (const std::string_view one : split(custom::kFormatChoices, ' '))
        if (one == name) return true;
    return false;
}

// What isn't in the recording can't be shown, and what is about samples means nothing here.
Result<void> check(const Arguments &a, std::string_view name, const custom::Settings &recorded) {
    if (name == "table" || name == "folded-ext")
        return wrong_usage(format("-f {} shows samples, and this is a recording of traces", name),
                           "-f text and json show one at a time");
    if (!shows_traces(name))
        return wrong_usage(format("-f {} shows calls, and this is a recording of traces", name),
                           "-f text and json show one at a time");
    if (a.has(option("ps"))) return wrong_usage("--ps is about the table of samples", "leave it out");
    if (a.has(option("per-thread"))) return wrong_usage("--per-thread is about samples and calls", "-f json has the threads");
    TRY(check_weight(a, option("weight"), name, recorded.samples, recorded.off_cpu));
    if (name == "pprof" && (a.text(option("output")).empty() || a.text(option("output")) == "-") && is_terminal(1))
        return wrong_usage(format("-f {} is binary, and standard output is a terminal", name),
                           "write it to a file with -o FILE, or pipe it to another program");
    const std::optional<render::Format> rendered = render::format_named(name);
    if (rendered && render::is_json(*rendered) && !render::writes_json())
        return Unexpected(make_error(Errc::unsupported, "this build writes no JSON"));
    return {};
}

Result<custom::ReportEnd> show(const Arguments &a, std::string_view name, custom::Report &report, Output &output) {
    custom::ViewOptions how;
    how.format = custom::rendered(name);
    how.json = name == "json";
    how.weight = weight_of(a, option("weight"));
    how.render.color = output.is_stdout() && color_wanted(a.text(option("color")), 1);
    how.render.title = a.text(option("title"));
    how.render.icicle = a.has(option("icicle"));
    how.render.delimiter = a.has(option("delimiter"));
    const std::unique_ptr<processes::DebugInfo> debug_info = TRY(debug_info_for(a, lines_ids(kOptions)));
    const custom::ReportNames names{
        std::string(a.text(option("symfs"))), {a.has(option("lines")), a.has(option("inline"))}, debug_info.get()};
    TRY(output.empty());
    output.keep();
    return report.show(how, names, output.writer());
}

int report(const Arguments &a, const InputFile &recording) {
    const std::string_view name = a.has(option("format")) ? a.text(option("format")) : std::string_view("text");
    Result<std::unique_ptr<custom::Report>> opened = custom::Report::open(recording.bytes(), recording.name());
    if (!opened) return complain(kWho, opened.error(), 1);
    if (Result<void> checked = check(a, name, (*opened)->settings()); !checked)
        return complain(kWho, checked.error(), checked.error().kind == Errc::unsupported ? 3 : 2);
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    const Result<custom::ReportEnd> end = show(a, name, **opened, *output);
    if (!end) return reader_gone(end.error()) ? 0 : complain(kWho, end.error());
    if (!a.has(option("quiet"))) {
        say(format("{}\n", end->totals));
        say_ledger(kWho, *end, "trace");
    }
    for (const std::string &warning : end->warnings) say(format("{}: warning: {}\n", kWho, warning));
    return end->unread ? 1 : 0;
}

} // namespace

int report_custom(const Arguments &a, const InputFile &recording) {
    if constexpr (has(Part::custom))
        return report(a, recording);
    else
        return complain(kWho, left_out(Part::custom, recording.name()));
}

} // namespace rawbpf::inline v0::cli::reporting
