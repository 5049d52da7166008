// `rawbpf top`: the BPF programs of the machine, by the time that they take.
#include <algorithm>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/other_screen.h"
#include "cli/running.h"
#include "cli/waiting.h"
#include "programs/render/text.h"
#include "programs/running/activity.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/stats.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf top";

constexpr Option kOptions[] = {
    every_option("how long an interval is: 1, 500ms, 1m"),
    kLooksDurationOption,
    {.name = "top",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "show at most N programs; by default, on a terminal, as many as fit",
     .section = "What",
     .least = 1},
    {.name = "all", .help = "also programs that didn't run in the interval"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf top", "what BPF costs this machine, now; Ctrl-C ends it"},
    {"sudo rawbpf top -d 10 --every 10s --json", "the same of ten seconds, for scripts"},
};

/// As many lines as the terminal has, as wide as it is.
std::string fitting(std::string_view text, const sys::TerminalSize &size) {
    std::string out;
    for (int lines = 1; !text.empty() && lines < size.rows; ++lines) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        append(out, "{}\n", render::cut(line, static_cast<size_t>(std::max(size.columns, 20) - 1)));
    }
    return out;
}

Result<void> watch(const Arguments &a, const LooksAsked &asked, Output &output) {
    const bool json = a.text(option("format")) == "json";
    const bool live = !json && is_terminal(output.fd());
    const size_t most = a.has(option("top")) ? a.count(option("top")) : SIZE_MAX;
    const RunStats counting = TRY_IN(RunStats::enable(), "counting the runs of programs");
    running::ActivityWatch programs;
    TRY(programs.look());
    if (json) {
        append_json_header(output.writer().text(), a);
        TRY(output.writer().flush());
    }
    std::optional<OtherScreen> screen;
    if (live) screen.emplace();
    Looks looks = TRY(Looks::begin(asked));
    for (uint64_t number = 1; TRY(looks.next()); ++number) {
        const running::ActivityInterval interval = TRY(programs.look());
        running::Around around;
        around.holders = running::Holders::scan();
        around.pins = running::PinnedPaths::scan();
        std::string text;
        if (json)
            running::append_activity_json(text, interval, around, number, most, a.has(option("all")));
        else
            text = printable_lines(running::activity_text(interval, around, most, a.has(option("all"))));
        if (screen) {
            screen->draw(fitting(text, sys::terminal_size(1)));
        } else {
            output.writer().write(text);
            TRY(output.writer().flush());
        }
    }
    return {};
}

int run_top(const Arguments &a) {
    const Result<LooksAsked> asked = looks_asked(a, option("every"), option("duration"), 10);
    if (!asked) return complain(kWho, asked.error(), 2);
    return write_output(kWho, a.text(option("output")), [&](Output &output) { return watch(a, *asked, output); });
}

} // namespace

const Command kTop{
    .name = "top",
    .summary = "show which BPF programs run, how often, and what they cost",
    .description =
        "Shows all programs in the kernel, sorted by the time that they took in the last interval: runs per second, share of a "
        "CPU, mean time of a run, the worst mean of an interval so far (the kernel keeps no maximum), the counted runs since the "
        "program was loaded, its age, and which processes hold it. On a terminal the table is redrawn; elsewhere each interval "
        "is a table or, in JSON, lines of type prog_activity and one of type interval.\n\n"
        "While top runs, the kernel counts runs and their time (BPF_ENABLE_STATS since 5.8; before that, rawbpf sets the sysctl "
        "kernel.bpf_stats_enabled and restores it at the end). Counting costs each run about 20 to 50 ns. The command needs "
        "CAP_SYS_ADMIN (status 3 without it).",
    .options = kOptions,
    .examples = kExamples,
    .run = run_top,
};

} // namespace rawbpf::inline v0::cli
