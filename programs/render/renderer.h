// The output stage: named samples in, text out.
//
//      begin(run)  sample(s) sample(s) ... end(ledger)
//
// Streaming formats (table, folded-ext, json, perf-script) write a line a sample; aggregating ones (folded, svg, top) keep one
// tree of the distinct stacks and write at the end. Neither keeps the samples. pprof, speedscope and firefox want every sample,
// with its thread, and write at the end.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "programs/render/frame.h"
#include "programs/render/writer.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::render {

enum class Format { table, folded, folded_ext, json, svg, top, pprof, perf_script, speedscope, firefox };

/// Every format's name as -f takes it, in the order of Format.
inline constexpr std::string_view kFormatNames[] = {"table", "folded", "folded-ext",  "json",       "svg",
                                                    "top",   "pprof",  "perf-script", "speedscope", "firefox"};
inline constexpr Format kFirstForTools = Format::pprof;
/// Whether the format is another tool's (tool_formats.h).
[[nodiscard]] constexpr bool for_other_tools(Format format) { return format >= kFirstForTools; }
[[nodiscard]] constexpr bool is_json(Format format) {
    return format == Format::json || format == Format::speedscope || format == Format::firefox;
}
[[nodiscard]] std::optional<Format> format_named(std::string_view name);
/// Whether the format counts equal stacks, whatever their thread and time.
[[nodiscard]] constexpr bool aggregates(Format format) {
    return format == Format::folded || format == Format::svg || format == Format::top;
}
/// Whether the format writes as samples come; where it doesn't, progress is worth showing meanwhile.
[[nodiscard]] constexpr bool streams(Format format) {
    return format == Format::table || format == Format::folded_ext || format == Format::json || format == Format::perf_script;
}

struct RenderOptions {
    bool stacks = false;     ///< table: the frames under each sample
    bool delimiter = false;  ///< folded: "-" between user and kernel frames
    bool threads = false;    ///< folded, svg, top: stacks of different threads are apart, below "comm-PID/TID"
    bool color = false;      ///< top: for a terminal
    std::string title = {};  ///< svg; empty: made from the command
    bool icicle = false;     ///< svg: the root at the top
    bool difference = false; ///< folded, svg: begun and ended twice, with an earlier profile and a later one (tool_formats.h)
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

// One factory a format; make_renderer chooses.
[[nodiscard]] std::unique_ptr<Renderer> make_table(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_folded(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_folded_ext(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_json(const RenderOptions &options, Writer &out); ///< nullptr: not in this build
[[nodiscard]] std::unique_ptr<Renderer> make_svg(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_top(const RenderOptions &options, Writer &out);

} // namespace rawbpf::inline v0::render
