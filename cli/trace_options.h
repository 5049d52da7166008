// The options of `rawbpf trace` and `rawbpf usdt trace`, and what a command line asks for by them.
#pragma once

#include <string_view>

#include "cli/common_options.h"
#include "cli/lines.h"
#include "cli/options.h"
#include "cli/running.h"
#include "cli/trace_export.h"
#include "programs/trace/sink.h"
#include "programs/trace/tracer.h"
#include "programs/trace/view.h"

namespace rawbpf::inline v0::cli::tracing {

consteval Option without_section(Option option) {
    option.section = {};
    return option;
}

// A trace's own formats, and all of programs/render that aren't of samples only.
#define RAWBPF_TRACE_FORMAT_WORD(format) " " #format
inline constexpr std::string_view kFormatChoices =
    std::string_view(RAWBPF_TRACE_FORMATS(RAWBPF_TRACE_FORMAT_WORD) RAWBPF_FORMATS_OF_TRACES).substr(1);
#undef RAWBPF_TRACE_FORMAT_WORD

inline constexpr Option kOptions[] = {
    {.name = "list",
     .letter = 'l',
     .help = "show what the probes match, with arguments, and attach nothing",
     .section = "What to trace"},
    {.name = "sig",
     .kind = OptionKind::text,
     .argument = "TYPES",
     .help = "the argument types of a program's function, in C: 'int,const char*', 'long (int fd, const char *path)'; of a Go "
             "function in Go: '(id int, key string) error'"},
    {.name = "types",
     .kind = OptionKind::file,
     .repeatable = true,
     .argument = "FILE",
     .help = "a file with names and types of the arguments of USDT probes, one probe per line: python:gc__start(int generation)"},
    {.name = "returns", .letter = 'r', .help = "show returns too: the result, and how long the call took"},
    {.name = "allow-unwind-risk",
     .help = "probe returns also in programs that unwind (C++) or change their stacks; a return probe may crash them"},
    followed_pids_option("What to keep"),
    {.name = "no-children",
     .help = "with -p, or COMMAND: only these processes, without those that they started or will start. Probes in one process "
             "then don't slow others that use the same library"},
    {.name = "tid", .kind = OptionKind::tids, .repeatable = true, .argument = "TID", .help = "only this thread, or a list"},
    {.name = "comm", .kind = OptionKind::text, .argument = "NAME", .help = "trace only threads with this name"},
    {.name = "uid",
     .kind = OptionKind::users,
     .repeatable = true,
     .argument = "UID",
     .help = "only this user's processes, by number or name, or a list: 0,www-data"},
    {.name = "pidns", .kind = OptionKind::pid, .argument = "PID", .help = "only tasks in the pid namespace of this process"},
    {.name = "mntns", .kind = OptionKind::pid, .argument = "PID", .help = "only tasks in the mount namespace of this process"},
    {.name = "cgroup", .kind = OptionKind::directory, .argument = "PATH", .help = "only tasks in this cgroup (v2) or below it"},
    {.name = "filter",
     .kind = OptionKind::text,
     .argument = "EXPRESSION",
     .help = "only events for which this expression is true; it is compiled into the BPF program: 'arg2 > 4096 && comm == "
             "\"cat\"', 'file->f_inode->i_size > 1m'"},
    {.name = "errors", .help = "only calls that return an error (a negative number)", .was = "e"},
    {.name = "min-duration",
     .kind = OptionKind::seconds,
     .argument = "TIME",
     .help = "only calls that took at least this long: 10us, 5ms, 1.5; prints one line per call, when it returns"},
    {.name = "sample",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "keep 1 in N of the remaining events, at each probe",
     .least = 1},
    {.name = "max-events",
     .letter = 'n',
     .kind = OptionKind::count,
     .argument = "N",
     .help = "end after so many events",
     .least = 1},
    kDurationOption,
    kAsRootOption,
    kCommandOutputOption,
    kReadyFdOption,
    kBacklogOption,
    {.name = "stack",
     .letter = 's',
     .help = "capture the kernel stack and the user stack with each event; -f folded, svg, top, pprof and other formats of "
             "profile count equal stacks",
     .section = "Stacks"},
    without_section(kUnwindOption),
    kUnwindMemoryOption,
    kDepthOption,
    kNativeOption,
    kLanguageOption,
    kRingOption,
    kLinesOption,
    kInlineOption,
    label_option(
        RAWBPF_LABEL_HELP("label each event with KEY's value, with and without --stack; formats that count stacks tell them "
                          "apart by it",
                          ". A process is looked at after its first event, so its first events have no labels; one of "
                          "--pid is looked at before")),
    {.name = "by",
     .kind = OptionKind::text,
     .argument = "KEYS",
     .help = "put events into groups, in the kernel, by these, separated by commas: comm, pid, tid, uid, gid, cpu, function, "
             "stack (which functions called it), ret, arguments and fields by name or as arg0, pointers followed, or expressions "
             "as in --filter: comm,arg0,'arg2 / 4096'. Goes with --count and the options below",
     .section = "Groups"},
    {.name = "sum", .kind = OptionKind::text, .repeatable = true, .argument = "X", .help = "the sum of X in each group"},
    {.name = "avg", .kind = OptionKind::text, .repeatable = true, .argument = "X", .help = "the mean of X"},
    {.name = "min", .kind = OptionKind::text, .repeatable = true, .argument = "X", .help = "the least X"},
    {.name = "max", .kind = OptionKind::text, .repeatable = true, .argument = "X", .help = "the most X"},
    {.name = "hist",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "X",
     .help =
         "how often X was 0, 1, 2 to 3, 4 to 7 ...: a histogram. X is an expression as in --filter: duration (in nanoseconds), "
         "ret, an argument, 'file->f_inode->i_size'"},
    {.name = "lhist",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "X,FROM,TO,STEP",
     .help = "a histogram with buckets of equal width: ret,0,1000,100"},
    {.name = "top", .kind = OptionKind::count, .argument = "N", .help = "show only the N largest groups", .least = 1},
    {.name = "every",
     .kind = OptionKind::seconds,
     .argument = "TIME",
     .help = "show the groups of each interval of this length (min and max are those since the start)"},
    {.name = "keys",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "room for so many groups; events that belong to others are lost, which the ledger says. Without it: 16384, fewer "
             "where histograms would take more than 64 MiB",
     .least = 1,
     .most = 1 << 22},
    {.name = "count",
     .letter = 'c',
     .help = "count in the kernel instead of showing events: how often each function is called, or with --by how many events "
             "each group has",
     .section = "Output",
     .excludes = "view"},
    {.name = "show",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "FIELD",
     .help = "show this field too; follows pointers by the kernel's types: 'file->f_inode->i_size'"},
    {.name = "graph",
     .letter = 'g',
     .help = "indent calls by depth, with their results and how long they took",
     .excludes = "view"},
    {.name = "latency", .letter = 'L', .help = "print a table of times for each function at the end"},
    {.name = "format",
     .letter = 'f',
     .kind = OptionKind::choice,
     .argument = "NAME",
     .help = "the output format",
     .fallback = "text",
     .choices = kFormatChoices},
    kJsonOption,
    kOutputOption,
    kRecordOption,
    {.name = "string",
     .kind = OptionKind::count,
     .argument = "BYTES",
     .help = "how much of a text is shown",
     .fallback = "128",
     .least = 16,
     .most = 4096},
    {.name = "explain",
     .help = "first print, on standard error, for each argument of a USDT probe: its specification, what it means, and the "
             "instructions that fetch it"},
    kColorOption,
    kVerboseOption,
    kQuietOption,
    kSpansOption,
    kSpanTimeoutOption,
    kKeepLiteralsOption,
    kOtlpOption,
    kOtlpEncodingOption,
    kPrometheusOption,
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }
inline constexpr SpanIds kSpanIds = span_ids(kOptions);

trace::Format format_of(const Arguments &a);
/// Whether events have stacks; whether only those are counted; whether -f folded shows the times of calls.
bool wants_stacks(const Arguments &a);
bool counts_stacks(const Arguments &a);
bool has_call_times(const Arguments &a);

/// What no run can do, told before anything else is opened than what COMMAND writes to. Errors: invalid_argument, with a hint.
[[nodiscard]] Result<CommandOutput> check(const Arguments &a);
/// What the tracer is to do. Errors: invalid_argument; a file that --types names can't be read.
[[nodiscard]] Result<trace::TraceOptions> trace_options(const Arguments &a);

} // namespace rawbpf::inline v0::cli::tracing
