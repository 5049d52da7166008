// The renderers of this build's formats: other tools' are a part that a build may leave out, and so are all of them.
#pragma once

#include "cli/built.h"
#include "programs/render/tool_formats.h"

namespace rawbpf::inline v0::cli {

inline Result<std::unique_ptr<render::Renderer>> make_no_renderer(render::Format, const render::RenderOptions &,
                                                                  render::Writer &) {
    return Unexpected(left_out(Part::report, "what counts and draws stacks"));
}
inline constexpr auto make_renderer = !has(Part::report)   ? make_no_renderer
                                      : has(Part::formats) ? render::make_any_renderer
                                                           : render::make_renderer;

} // namespace rawbpf::inline v0::cli
