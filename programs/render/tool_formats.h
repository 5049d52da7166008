// The formats of other tools, and differences between two profiles. A build for a board may leave them out: it records, and a
// whole rawbpf reports anywhere.
#pragma once

#include <cstdint>

#include "programs/render/renderer.h"

namespace rawbpf::inline v0::render {

/// As make_renderer(), for all formats. Errors: unsupported (JSON left out of this build).
[[nodiscard]] Result<std::unique_ptr<Renderer>> make_any_renderer(Format format, const RenderOptions &options, Writer &out);

// RenderOptions::difference.
[[nodiscard]] std::unique_ptr<Renderer> make_folded_difference(const RenderOptions &options, Writer &out);
[[nodiscard]] std::unique_ptr<Renderer> make_svg_difference(const RenderOptions &options, Writer &out);

/// Nanoseconds from one sample to the next; 0 where it isn't known.
[[nodiscard]] inline uint64_t period_of(const RunInfo &run) {
    return run.frequency > 0 ? static_cast<uint64_t>(1e9 / run.frequency + 0.5) : 0;
}

} // namespace rawbpf::inline v0::render
