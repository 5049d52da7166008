// `rawbpf report`: finds the names of a recording's addresses and shows it. A tool's --record wrote it, on this or another
// machine. report needs no privileges.
#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/report_options.h"
#include "cli/running.h"
#include "cli/view.h"
#include "programs/recording/recording.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
using namespace reporting;

namespace {

constexpr Example kExamples[] = {
    {"rawbpf report run.rbpf -f svg -o flame.svg", "a flame graph of a capture"},
    {"rawbpf report run.rbpf --inline -f folded", "with inlined functions as separate frames, if there is debug info"},
    {"rawbpf report board.rbpf --symfs ~/board/rootfs -f top",
     "a board's capture; the names come from the files that the board was built from"},
    {"rawbpf report before.rbpf --diff after.rbpf -f svg -o diff.svg",
     "functions that became slower in red, functions that became faster in blue"},
    {"ssh board sudo rawbpf profile --record - -d 10 | rawbpf report - -f folded",
     "record on the board; find names and show the capture on this machine"},
    {"rawbpf report requests.rbpf -f svg --weight context -o bytes.svg", "the contexts that rawbpf custom recorded, by stack"},
    {"rawbpf report calls.rbpf -f chrome -o calls.json", "the calls that rawbpf trace recorded, on a timeline"},
};

constexpr size_t kMostPiped = size_t{256} << 20;

// Captures can be compared only if both counted the same event.
Result<void> check_comparable(const InputFile &before, const InputFile &after) {
    const RunInfo a = TRY(captured_run(before.bytes(), before.name())), b = TRY(captured_run(after.bytes(), after.name()));
    if (!a.counts_events() && !b.counts_events()) return {}; // time, by whatever clock
    if (a.event == b.event) return {};
    const auto what = [](const RunInfo &run) { return run.event.empty() ? std::string("CPU time") : run.event; };
    return Unexpected(make_error(Errc::invalid_argument,
                                 format("{} has samples of {}, {} has samples of {}: report can't compare them", before.name(),
                                        what(a), after.name(), what(b)),
                                 "record both with the same --event"));
}

// Hands a capture to the view, from its begin to its end. The exit status, where it went wrong.
std::optional<int> show(const InputFile &capture, const ReportOptions &options, View &view, Outcome &outcome) {
    Result<Outcome> done = report_capture(capture.bytes(), capture.name(), options, view);
    if (!done) return reader_gone(done.error()) ? 0 : complain(kWho, done.error(), 1);
    Result<void> written = view.finish(*done);
    if (!written) return reader_gone(written.error()) ? 0 : complain(kWho, written.error(), 1);
    outcome = std::move(*done);
    return {};
}

/// `capture`: nullptr with --diff.
int report_profile(const Arguments &a, const InputFile *opened) {
    std::string path(a.operands()[0]);
    const std::string later(a.text(option("diff")));
    if (!render::format_named(a.text(option("format"))))
        return complain(kWho,
                        wrong_usage(format("-f {} shows calls, and a profile has samples", a.text(option("format"))),
                                    "-f table, folded-ext and json show one at a time")
                            .error(),
                        2);
    ViewOptions wanted = view_options(a, view_ids(kOptions));
    wanted.render.difference = a.has(option("diff"));
    if (wanted.render.difference) {
        if (!a.has(option("format"))) wanted.format = render::Format::folded;
        if (wanted.format != render::Format::folded && wanted.format != render::Format::svg)
            return complain(
                kWho,
                wrong_usage(format("--diff: -f {} can't show differences", a.text(option("format"))), "use -f folded or -f svg")
                    .error(),
                2);
        if (path == "-" && later == "-")
            return complain(kWho, wrong_usage("both captures name standard input", "give one of them as a file").error(), 2);
    }
    Result<InputFile> first = opened ? InputFile() : InputFile::open(path, kMostPiped);
    if (!first) return complain(kWho, first.error(), 1);
    const InputFile *capture = opened ? opened : &*first;
    ReportOptions options;
    options.symfs = a.text(option("symfs"));
    Result<std::unique_ptr<processes::DebugInfo>> debug_info = debug_info_for(a, lines_ids(kOptions));
    if (!debug_info) return complain(kWho, debug_info.error(), 3);
    options.debug_info = debug_info->get();
    options.per_thread = a.has(option("per-thread"));
    options.lines = a.has(option("lines"));
    options.inlined = a.has(option("inline"));
    Result<InputFile> second = InputFile();
    if (wanted.render.difference) second = InputFile::open(later, kMostPiped);
    if (!second) return complain(kWho, second.error(), 1);
    if (wanted.render.difference)
        if (Result<void> same = check_comparable(*capture, *second); !same) return complain(kWho, same.error(), 1);

    Result<std::unique_ptr<View>> view = View::open(wanted);
    if (!view) return complain(kWho, view.error(), view.error().kind == Errc::unsupported ? 3 : 1);
    options.delivery = (*view)->delivery();
    options.names = (*view)->wants_names();

    Outcome outcome;
    if (auto status = show(*capture, options, **view, outcome)) return *status;
    if (wanted.render.difference) {
        Outcome before = std::move(outcome);
        if (auto status = show(*second, options, **view, outcome)) return *status;
        outcome.unread |= before.unread;
        for (std::string &warning : before.warnings)
            if (std::find(outcome.warnings.begin(), outcome.warnings.end(), warning) == outcome.warnings.end())
                outcome.warnings.push_back(std::move(warning));
    }
    say_outcome(kWho, outcome, "the command", a.has(option("quiet")), a.has(option("verbose")));
    return outcome.unread ? 1 : 0;
}

int run_report(const Arguments &a) {
    if (a.has(option("symfs")))
        if (Result<struct stat> st = sys::stat_file(std::string(a.text(option("symfs")))); !st)
            return complain(kWho, in_context(std::move(st).error(), "--symfs"), 1);
    if (a.has(option("diff"))) {
        if (!a.has(option("weight"))) return report_profile(a, nullptr);
        return complain(
            kWho,
            wrong_usage("--weight is about recordings of rawbpf custom, and --diff compares profiles", "leave one out").error(),
            2);
    }
    const Result<InputFile> file = InputFile::open(std::string(a.operands()[0]), kMostPiped);
    if (!file) return complain(kWho, file.error(), 1);
    const Result<recording::Header> header = recording::Reader::header_of(file->bytes(), file->name());
    if (!header) return complain(kWho, header.error(), 1);
    if (a.has(option("weight")) && header->tool != recording::Tool::custom)
        return complain(kWho,
                        wrong_usage("--weight is about recordings of rawbpf custom",
                                    format("{} is one of rawbpf {}", file->name(), recording::tool_name(header->tool)))
                            .error(),
                        2);
    switch (header->tool) {
    case recording::Tool::custom: return report_custom(a, *file);
    case recording::Tool::trace: return report_trace(a, *file);
    case recording::Tool::profile: break;
    }
    return report_profile(a, &*file);
}

} // namespace

const Command kReport{
    .name = "report",
    .summary = "show what rawbpf profile, trace, usdt trace or custom recorded (--record)",
    .description =
        "Shows a recording in any format of the tool that wrote it, as the tool would have shown it. The names of addresses come "
        "from the files of this machine, or (--symfs) from a folder that is laid out like the root of the machine that recorded. "
        "rawbpf uses a file only if it has the recorded build-id. The names and types of arguments and the names of constants "
        "are "
        "in the recording. report needs no privileges, and runs on any machine. If a recording ends early (a full disk, a tool "
        "that was killed), report shows the complete part, and the exit status is 1.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_report,
};

} // namespace rawbpf::inline v0::cli
