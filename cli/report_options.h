// The options of `rawbpf report`, for recordings of each tool.
#pragma once

#include <string_view>

#include "cli/common_options.h"
#include "cli/custom_weight.h"
#include "cli/lines.h"
#include "cli/object_file.h"
#include "cli/options.h"
#include "programs/trace/sink.h"

namespace rawbpf::inline v0::cli::reporting {

inline constexpr std::string_view kWho = "rawbpf report";

// Of profiles, and what traces have beside them: those that show events.
#define RAWBPF_REPORT_FORMAT_WORD(format, name, ...) name " "
inline constexpr Option kReportFormatOption{
    .name = "format",
    .letter = 'f',
    .kind = OptionKind::choice,
    .argument = "NAME",
    .help = "the output format: any that the tool which has recorded has; of rawbpf trace and custom text is the default",
    .section = "Output",
    .fallback = "table",
    .choices = RAWBPF_FORMATS(RAWBPF_REPORT_FORMAT_WORD) "text chrome protobuf"};
#undef RAWBPF_REPORT_FORMAT_WORD

inline constexpr Option kOptions[] = {
    {.name = "symfs",
     .kind = OptionKind::directory,
     .argument = "DIR",
     .help = "look for programs, libraries and debug files in this folder first: by path, then by build-id, as "
             ".build-id/xx/yyyy.debug",
     .section = "Names"},
    kReportFormatOption,
    kJsonOption,
    kOutputOption,
    kPsOption,
    kLinesOption,
    kInlineOption,
    kDelimiterOption,
    kPerThreadOption,
    kTitleOption,
    kIcicleOption,
    weight_option("of rawbpf custom, folded, svg, top: what to add up for each stack: how often it came, its contexts, or its "
                  "nanoseconds off the CPU"),
    {.name = "diff",
     .kind = OptionKind::file,
     .argument = "AFTER",
     .help = "compare FILE, the earlier capture, with AFTER, a later one. folded: each line has two counts. svg: the flame graph "
             "of the later one, red where a function's share of all samples grew, blue where it shrank",
     .part = Part::formats},
    kColorOption,
    kVerboseOption,
    kQuietOption,
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

/// A recording of rawbpf trace or usdt trace, shown. Returns the exit status.
[[nodiscard]] int report_trace(const Arguments &a, const InputFile &recording);
/// A recording of rawbpf custom.
[[nodiscard]] int report_custom(const Arguments &a, const InputFile &recording);

} // namespace rawbpf::inline v0::cli::reporting
