// Options that mean the same in every command: rows for the commands' tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::cli {

/// --format, among these, separated by spaces.
constexpr Option format_option(std::string_view fallback, std::string_view choices) {
    return {.name = "format",
            .letter = 'f',
            .kind = OptionKind::choice,
            .argument = "NAME",
            .help = "the output format",
            .section = "Output",
            .fallback = fallback,
            .choices = choices};
}
inline constexpr Option kFormatOption = format_option("table", render::kFormatChoices);
inline constexpr Option kJsonOption{.name = "json", .help = "short for --format json", .stands_for = "format=json"};
inline constexpr Option kOutputOption{
    .name = "output",
    .letter = 'o',
    .kind = OptionKind::file,
    .written = true,
    .argument = "FILE",
    .help = "write to this file instead of standard output; rawbpf opens it before anything starts"};
/// Of tools that record events: see check_record().
inline constexpr Option kRecordOption{
    .name = "record",
    .kind = OptionKind::file,
    .written = true,
    .argument = "FILE",
    .help =
        "write a recording and show nothing: rawbpf then looks up no names and formats nothing. rawbpf report shows it, on this "
        "or another machine; - is standard output"};
/// --output of a command whose result is a file: `help` says what is written.
constexpr Option file_output_option(std::string_view help) {
    Option option = kOutputOption;
    option.help = help;
    option.section = "Output";
    return option;
}
/// --pid of a command that looks at processes.
constexpr Option pids_option(std::string_view help, std::string_view section = "What to look at") {
    return {.name = "pid",
            .letter = 'p',
            .kind = OptionKind::pids,
            .repeatable = true,
            .argument = "PID",
            .help = help,
            .section = section};
}
/// --pid of a command that runs as long as these processes do.
constexpr Option followed_pids_option(std::string_view section = {}) {
    return pids_option("take only this process, or a list such as 1,2,3, and all processes that they started or will start. "
                       "rawbpf ends when the last process of the list ends",
                       section);
}
/// Of tools with stacks: whose functions of an interpreter's process.
inline constexpr Option kNativeOption{.name = "native",
                                      .help = "show interpreters (Python, PHP, Ruby, Perl, node) by their own native functions, "
                                              "not by those of the script that they run",
                                      .excludes = "languages",
                                      .part = Part::languages};
inline constexpr Option kLanguageOption{
    .name = "language",
    .help = "of processes that run an interpreter (Python, PHP, Ruby, Perl, node), show only the functions of the script",
    .excludes = "languages",
    .part = Part::languages};
inline constexpr Option kPsOption{
    .name = "ps", .help = "table: print the frames below each sample, the innermost first", .only_with = "format=table"};
inline constexpr Option kDelimiterOption{
    .name = "delimiter", .help = "folded: put a - between user and kernel frames", .only_with = "format=folded folded-ext"};
inline constexpr Option kPerThreadOption{.name = "per-thread",
                                         .letter = 't',
                                         .help = "folded, svg, top: count the stacks of each thread separately, below "
                                                 "COMM-PID/TID. Other formats name the thread of each sample anyway"};
inline constexpr Option kTitleOption{.name = "title",
                                     .kind = OptionKind::text,
                                     .argument = "TEXT",
                                     .help = "svg: the title of the graph",
                                     .only_with = "format=svg"};
inline constexpr Option kIcicleOption{
    .name = "icicle", .help = "svg: draw callees below their callers, with the root at the top", .only_with = "format=svg"};
inline constexpr Option kColorOption{.name = "color",
                                     .kind = OptionKind::choice,
                                     .argument = "WHEN",
                                     .help = "when to use colours: auto, only on a terminal",
                                     .fallback = "auto",
                                     .choices = "auto always never"};
/// --verbose, and what more is said.
constexpr Option verbose_option(std::string_view help) { return {.name = "verbose", .letter = 'v', .help = help}; }
inline constexpr Option kVerboseOption = verbose_option("say more about what happens");
inline constexpr Option kQuietOption{.name = "quiet", .letter = 'q', .help = "print only errors: no ledger, no progress"};
/// run() (commands.cpp) starts the Narrator for it. `whole`: the command has -v, which shows all.
constexpr Option syscalls_option(bool whole) {
    return {.name = "syscalls",
            .argument = "[=json]",
            .help = whole ? "show each bpf(2), perf_event_open(2), ioctl(2) and mmap(2) call as it is made, decoded, on standard "
                            "error, with =json as a line of JSON; -v shows all of the data that a call points at, not only its "
                            "beginning"
                          : "show each bpf(2), perf_event_open(2), ioctl(2) and mmap(2) call as it is made, decoded, on standard "
                            "error, with =json as a line of JSON, with the beginning of the data that it points at",
            .section = "Other",
            .part = Part::syscalls};
}
inline constexpr Option kSyscallsOption = syscalls_option(true);

inline constexpr Option kDurationOption{.name = "duration",
                                        .letter = 'd',
                                        .kind = OptionKind::seconds,
                                        .argument = "SECONDS",
                                        .help = "how long: 3, 0.5, 200ms, 2m; by default until COMMAND ends, or Ctrl-C",
                                        .section = "How long"};
/// Of commands that look again and again, see Looks: how often, and for how long.
constexpr Option every_option(std::string_view help) {
    return {.name = "every", .kind = OptionKind::seconds, .argument = "TIME", .help = help, .section = "When", .fallback = "1"};
}
inline constexpr Option kLooksDurationOption{.name = "duration",
                                             .letter = 'd',
                                             .kind = OptionKind::seconds,
                                             .argument = "TIME",
                                             .help = "end after this time; by default at Ctrl-C"};
inline constexpr Option kAsRootOption{.name = "as-root",
                                      .help = "under sudo: run COMMAND as root, not as the user who called sudo"};
inline constexpr Option kCommandOutputOption{
    .name = "command-output",
    .kind = OptionKind::text,
    .written = true,
    .argument = "WHERE",
    .help =
        "where COMMAND's standard output goes: stderr, stdout, null, or a file. By default it goes to rawbpf's standard output, "
        "except when rawbpf writes a format for machines there: then it goes to standard error, so that the two don't mix"};
/// Whom it is about, beside --pid.
inline constexpr Option kNoChildrenOption{
    .name = "no-children", .help = "with -p: take only these processes, without those that they started or will start"};
/// See ring_bytes().
inline constexpr Option kRingOption{
    .name = "ring",
    .kind = OptionKind::text,
    .argument = "SIZE",
    .help = "the size of the ring buffer, rounded up to a power of two: 8M, 65536K; from 1M to "
            "4G, and a quarter of the memory at most. The ledger counts what was lost because the buffer was full (ring full)"};
inline constexpr Option kReadyFdOption{.name = "ready-fd",
                                       .kind = OptionKind::count,
                                       .argument = "N",
                                       .help = "write a byte to this file descriptor when everything is attached",
                                       .most = 1 << 20};

/// How user stacks are walked: for commands that take stacks. See unwind_choice().
inline constexpr Option kUnwindOption{.name = "unwind",
                                      .kind = OptionKind::choice,
                                      .argument = "HOW",
                                      .help =
                                          "how to walk user stacks. dwarf: by the unwind tables that compilers write for "
                                          "exceptions; programs need no frame pointers. fp: by frame pointers. auto: by unwind "
                                          "tables if this kernel can do it, otherwise by frame pointers, with a warning",
                                      .section = "Stacks",
                                      .fallback = "auto",
                                      .choices = "auto fp dwarf"};
inline constexpr Option kUnwindMemoryOption{.name = "unwind-memory",
                                            .kind = OptionKind::text,
                                            .argument = "SIZE",
                                            .help =
                                                "the most memory that unwind tables may use: 64M, 65536K; from 1M to 4G, and a "
                                                "quarter of the memory at most. By default a sixteenth of it, 64M at most. "
                                                "When it is full, rawbpf drops the least used tables",
                                            .part = Part::unwind};
constexpr Option depth_option(const char *fallback, const char *help) {
    return {
        .name = "depth", .kind = OptionKind::count, .argument = "N", .help = help, .fallback = fallback, .least = 1, .most = 255};
}
inline constexpr Option kDepthOption =
    depth_option("127", "the most frames that rawbpf takes from a user stack when it walks it by unwind tables");

/// rawbpf's own command line, as the header of JSON output and of captures has it.
inline std::vector<std::string> own_command_line(std::vector<std::string> command, const Arguments &a) {
    command.insert(command.end(), a.words().begin(), a.words().end());
    return command;
}

/// Where a command's table has the rows that say how to show samples.
struct ViewIds {
    Id format, output, ps, delimiter, per_thread, title, icicle, color;
};
template <size_t N> consteval ViewIds view_ids(const Option (&table)[N]) {
    return {find(table, "format"),     find(table, "output"), find(table, "ps"),     find(table, "delimiter"),
            find(table, "per-thread"), find(table, "title"),  find(table, "icicle"), find(table, "color")};
}

} // namespace rawbpf::inline v0::cli
