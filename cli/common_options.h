// Options that mean the same in every command: rows for the commands' tables.
#pragma once

#include "cli/options.h"
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::cli {

inline constexpr Option kFormatOption{.name = "format",
                                      .letter = 'f',
                                      .kind = Kind::choice,
                                      .argument = "NAME",
                                      .help = "how to show it",
                                      .section = "Output",
                                      .fallback = "table",
                                      .choices = "table folded folded-ext json svg top"};
inline constexpr Option kJsonOption{.name = "json", .help = "short for --format json", .stands_for = "format=json"};
inline constexpr Option kOutputOption{.name = "output",
                                      .letter = 'o',
                                      .kind = Kind::file,
                                      .argument = "FILE",
                                      .help = "write there instead of standard output; tried before anything starts"};
inline constexpr Option kPsOption{.name = "ps", .help = "table: print the frames under each sample, leaf first"};
inline constexpr Option kDelimiterOption{.name = "delimiter", .help = "folded: put a - between user and kernel frames"};
inline constexpr Option kTitleOption{
    .name = "title", .kind = Kind::text, .argument = "TEXT", .help = "svg: the title of the graph"};
inline constexpr Option kColorOption{.name = "color",
                                     .kind = Kind::choice,
                                     .argument = "WHEN",
                                     .help = "colours",
                                     .fallback = "auto",
                                     .choices = "auto always never"};
inline constexpr Option kVerboseOption{.name = "verbose", .letter = 'v', .help = "say more about what happens"};
inline constexpr Option kQuietOption{.name = "quiet", .letter = 'q', .help = "no ledger and no progress, only errors"};
inline constexpr Option kSyscallsOption{.name = "syscalls",
                                        .help = "show each bpf(2), perf_event_open(2), ioctl(2) and mmap(2) as it is made, "
                                                "decoded, on standard error",
                                        .section = "Other"};

/// Where a command's table has the rows that say how to show samples.
struct ViewIds {
    Id format, output, ps, delimiter, title, color;
};
template <size_t N> consteval ViewIds view_ids(const Option (&table)[N]) {
    return {find(table, "format"),    find(table, "output"), find(table, "ps"),
            find(table, "delimiter"), find(table, "title"),  find(table, "color")};
}

} // namespace rawbpf::inline v0::cli
