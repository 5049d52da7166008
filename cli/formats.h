// The renderers of this build's formats: other tools' are a part that a build may leave out.
#pragma once

#include "cli/built.h"
#include "programs/render/tool_formats.h"

namespace rawbpf::inline v0::cli {

inline constexpr auto make_renderer = has(Part::formats) ? render::make_any_renderer : render::make_renderer;

} // namespace rawbpf::inline v0::cli
