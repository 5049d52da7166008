// The formats of other tools, and differences between two profiles. A build for a board may leave them out: it records, and a
// whole rawbpf reports anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "programs/render/renderer.h"

namespace rawbpf::inline v0::render {

/// What a trace that isn't a clock's sample has beside its stacks.
struct TraceOrigin {
    std::string_view event = {}; ///< what happened, "custom"; empty: it is a clock's sample. Lives as long as the program
    std::optional<uint64_t> context = {}; ///< a number that belongs to it
    uint64_t weight = 0;                  ///< nanoseconds
};
/// How such traces are handed over: before each sample() the caller says what it is of.
struct TraceOptions {
    const TraceOrigin *current = nullptr; ///< nullptr: all are a clock's
    std::string_view weight = {};         ///< pprof: what weights are, "off_cpu"; empty: they aren't shown
};

/// As make_renderer(), for all formats. Errors: unsupported (JSON left out of this build).
[[nodiscard]] Result<std::unique_ptr<Renderer>> make_any_renderer(Format format, const RenderOptions &options, Writer &out);
/// The same for such traces: pprof has origin and context as labels, perf-script the event.
[[nodiscard]] Result<std::unique_ptr<Renderer>> make_trace_renderer(Format format, const RenderOptions &options,
                                                                    const TraceOptions &traces, Writer &out);

[[nodiscard]] std::unique_ptr<Renderer> make_pprof(const TraceOptions &traces, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_perf_script(const TraceOptions &traces, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_speedscope(const RenderOptions &options, Writer &out);

[[nodiscard]] std::unique_ptr<Renderer> make_firefox(const RenderOptions &options, Writer &out);
// RenderOptions::difference.
[[nodiscard]] std::unique_ptr<Renderer> make_folded_difference(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_svg_difference(const RenderOptions &options, Writer &out);

/// Nanoseconds from one sample to the next; 0 where it isn't known.
[[nodiscard]] inline uint64_t period_of(const RunInfo &run) {
    return run.frequency > 0 ? static_cast<uint64_t>(1e9 / run.frequency + 0.5) : 0;
}

} // namespace rawbpf::inline v0::render
