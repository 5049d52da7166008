// The formats of other tools. They are in rawbpf-lab only: rawbpf, for boards, records, and rawbpf-lab reports anywhere.
#pragma once

#include <cmath>

#include "programs/render/renderer.h"

namespace rawbpf::inline v0::render {

/// As make_renderer(), for all formats. Errors: unsupported (JSON left out of this build).
[[nodiscard]] Result<std::unique_ptr<Renderer>> make_any_renderer(Format format, const RenderOptions &options, Writer &out);

[[nodiscard]] std::unique_ptr<Renderer> make_pprof(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_perf_script(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_speedscope(const RenderOptions &options, Writer &out);

[[nodiscard]] std::unique_ptr<Renderer> make_firefox(const RenderOptions &options, Writer &out);
// RenderOptions::difference.
[[nodiscard]] std::unique_ptr<Renderer> make_folded_difference(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_svg_difference(const RenderOptions &options, Writer &out);

/// Nanoseconds from one sample to the next; 0 where it isn't known.
[[nodiscard]] inline uint64_t period_of(const RunInfo &run) {
    return run.frequency > 0 ? static_cast<uint64_t>(std::llround(1e9 / run.frequency)) : 0;
}

} // namespace rawbpf::inline v0::render
