// `rawbpf report`: finds the names of a capture's addresses and shows it. `rawbpf profile --record` wrote the capture, on this or
// another machine. report needs no privileges.
#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/running.h"
#include "cli/view.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf report";

constexpr Option kOptions[] = {
    {.name = "symfs",
     .kind = OptionKind::directory,
     .argument = "DIR",
     .help = "look for programs, libraries and debug files in this folder first: by path, then by build-id, as "
             ".build-id/xx/yyyy.debug",
     .section = "Names"},
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
    {.name = "diff",
     .kind = OptionKind::file,
     .argument = "AFTER",
     .help = "compare FILE, the earlier capture, with AFTER, a later one. folded: each line has two counts. svg: the flame graph "
             "of the later one, red where a function's share of all samples grew, blue where it shrank"},
    kColorOption,
    kVerboseOption,
    kQuietOption,
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf report run.rbpf -f svg -o flame.svg", "a flame graph of a capture"},
    {"rawbpf report run.rbpf --inline -f folded", "with inlined functions as separate frames, if there is debug info"},
    {"rawbpf report board.rbpf --symfs ~/board/rootfs -f top",
     "a board's capture; the names come from the files that the board was built from"},
    {"rawbpf report before.rbpf --diff after.rbpf -f svg -o diff.svg",
     "functions that became slower in red, functions that became faster in blue"},
    {"ssh board sudo rawbpf profile --record - -d 10 | rawbpf report - -f folded",
     "record on the board; find names and show the capture on this machine"},
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

int run_report(const Arguments &a) {
    std::string path(a.operands()[0]);
    const std::string later(a.text(option("diff")));
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
    Result<InputFile> capture = InputFile::open(path, kMostPiped);
    if (!capture) return complain(kWho, capture.error(), 1);
    ReportOptions options;
    options.symfs = a.text(option("symfs"));
    if (!options.symfs.empty())
        if (Result<struct stat> st = sys::stat_file(options.symfs); !st)
            return complain(kWho, in_context(std::move(st).error(), "--symfs"), 1);

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

} // namespace

const Command kReport{
    .name = "report",
    .summary = "show a capture that rawbpf profile --record wrote",
    .description = "Shows a capture in any format of rawbpf profile. The names of addresses come from the files of this machine, "
                   "or (--symfs) from a folder that is laid out like the root of the machine that recorded. rawbpf uses a file "
                   "only if it has the recorded build-id. report needs no privileges, and runs on any machine. If a capture ends "
                   "early (a full disk, a profiler that was killed), report shows the complete part, and the exit status is 1.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_report,
};

} // namespace rawbpf::inline v0::cli
