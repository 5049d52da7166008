// The output stage: named samples in, text out.
//
//      begin(run)  sample(s) sample(s) ... end(ledger)
//
// Streaming formats (table, folded-ext, json, perf-script) write a line a sample; aggregating ones (folded, svg, top) keep one
// tree of the distinct stacks and write at the end. Neither keeps the samples. pprof, speedscope and firefox want every sample,
// with its thread, and write at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "programs/render/frame.h"
#include "programs/render/writer.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::render {

// The formats, a row each: `profile`, `report`, `custom` and `trace` take them, and help, man pages and completions name them. A
// new format is FORMAT.cpp with make_FORMAT() in it, and a row here, which meson.build reads, too.
//
//      X(format, name, writes, json, whose, of)
//
//      format   make_FORMAT() makes its renderer
//      name     as -f takes it
//      writes   streams: as samples come; counts: equal stacks, whatever their thread and time, at the end; keeps: all samples,
//               with their threads, at the end
//      json     json: it is JSON, which a build without nlohmann-json can't write; text: it isn't
//      whose    own: in each build; tools: another tool's, which a build can leave out (tool_formats.h)
//      of       any: of samples and of traces (custom, trace); samples: those have a form of their own in its place
// clang-format off
#define RAWBPF_FORMATS(X) \
    X(table, "table", streams, text, own, samples) \
    X(folded, "folded", counts, text, own, any) \
    X(folded_ext, "folded-ext", streams, text, own, samples) \
    X(json, "json", streams, json, own, samples) \
    X(svg, "svg", counts, text, own, any) \
    X(top, "top", counts, text, own, any) \
    X(pprof, "pprof", keeps, text, tools, any) \
    X(perf_script, "perf-script", streams, text, tools, any) \
    X(speedscope, "speedscope", keeps, json, tools, any) \
    X(firefox, "firefox", keeps, json, tools, any)
// clang-format on

#define RAWBPF_FORMAT_ID(format, ...) format,
enum class Format { RAWBPF_FORMATS(RAWBPF_FORMAT_ID) };
#undef RAWBPF_FORMAT_ID

/// A row of the table.
struct FormatRow {
    enum class Writes : uint8_t { streams, counts, keeps };
    enum class Text : uint8_t { text, json };
    enum class Whose : uint8_t { own, tools };
    std::string_view name;
    Writes writes;
    Text text;
    Whose whose;
};
/// In the order of Format.
#define RAWBPF_FORMAT_ROW(format, name, writes, json, whose, of)                                                                 \
    FormatRow{name, FormatRow::Writes::writes, FormatRow::Text::json, FormatRow::Whose::whose},
inline constexpr FormatRow kFormats[] = {RAWBPF_FORMATS(RAWBPF_FORMAT_ROW)};
#undef RAWBPF_FORMAT_ROW
[[nodiscard]] constexpr const FormatRow &row_of(Format format) { return kFormats[static_cast<size_t>(format)]; }

/// All names, with blanks between them.
#define RAWBPF_FORMAT_WORD(format, name, ...) " " name
inline constexpr std::string_view kFormatChoices = std::string_view(RAWBPF_FORMATS(RAWBPF_FORMAT_WORD)).substr(1);
#undef RAWBPF_FORMAT_WORD
/// Those of traces, each with a blank in front.
#define RAWBPF_FORMAT_OF_samples(name)
#define RAWBPF_FORMAT_OF_any(name) " " name
#define RAWBPF_FORMAT_OF_TRACES(format, name, writes, json, whose, of) RAWBPF_FORMAT_OF_##of(name)
#define RAWBPF_FORMATS_OF_TRACES "" RAWBPF_FORMATS(RAWBPF_FORMAT_OF_TRACES)

/// Whether the format is another tool's (tool_formats.h).
[[nodiscard]] constexpr bool for_other_tools(Format format) { return row_of(format).whose == FormatRow::Whose::tools; }
[[nodiscard]] constexpr bool is_json(Format format) { return row_of(format).text == FormatRow::Text::json; }
[[nodiscard]] std::optional<Format> format_named(std::string_view name);
/// Whether the format counts equal stacks, whatever their thread and time.
[[nodiscard]] constexpr bool aggregates(Format format) { return row_of(format).writes == FormatRow::Writes::counts; }
/// Whether the format writes as samples come; where it doesn't, progress is worth showing meanwhile.
[[nodiscard]] constexpr bool streams(Format format) { return row_of(format).writes == FormatRow::Writes::streams; }

/// What a trace that isn't a clock's sample has beside its stacks.
struct TraceOrigin {
    std::string_view event = {}; ///< what happened, "custom"; empty: it is a clock's sample. Lives as long as the program
    std::optional<uint64_t> context = {}; ///< a number that belongs to it
    uint64_t weight = 0;                  ///< nanoseconds
};
/// How such traces are handed over: before each sample() the caller says what it is of. pprof has origin and context as labels,
/// perf-script the event.
struct TraceOptions {
    const TraceOrigin *current = nullptr; ///< nullptr: all are a clock's
    std::string_view weight = {};         ///< pprof: what weights are, "off_cpu"; empty: they aren't shown
};

struct RenderOptions {
    bool stacks = false;     ///< table: the frames under each sample
    bool delimiter = false;  ///< folded: "-" between user and kernel frames
    bool threads = false;    ///< folded, svg, top: stacks of different threads are apart, below "comm-PID/TID"
    bool color = false;      ///< top: for a terminal
    std::string title = {};  ///< svg; empty: made from the command
    bool icicle = false;     ///< svg: the root at the top
    bool difference = false; ///< folded, svg: begun and ended twice, with an earlier profile and a later one (tool_formats.h)
    TraceOptions traces = {};
};

/// One output format at work. Calls come in the order of the picture above, begin and end once each.
class Renderer {
  public:
    virtual ~Renderer() = default;
    virtual void begin(const RunInfo &run) = 0;
    /// `count`: what it stands for (NamedSample::weight), or of so many equal samples the sum.
    virtual void sample(const NamedSample &sample, uint64_t count = 1) = 0;
    virtual void end(const Ledger &ledger) = 0;
};

/// The renderer for one of rawbpf's own formats, writing to `out`, which must outlive it. Errors: unsupported (json left out of
/// this build; for_other_tools(), which make_any_renderer() makes).
[[nodiscard]] Result<std::unique_ptr<Renderer>> make_renderer(Format format, const RenderOptions &options, Writer &out);

// Every format's factory; make_renderer() and make_any_renderer() choose. Only JSON's returns nullptr: in a build without.
#define RAWBPF_FORMAT_MAKER(format, ...)                                                                                         \
    [[nodiscard]] std::unique_ptr<Renderer> make_##format(const RenderOptions &options, Writer &out);
RAWBPF_FORMATS(RAWBPF_FORMAT_MAKER)
#undef RAWBPF_FORMAT_MAKER

} // namespace rawbpf::inline v0::render
