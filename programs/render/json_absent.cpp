// Stands in for json.cpp in a build without nlohmann-json (-Djson=disabled): make_renderer turns the nullptr into a clear error.
#include "programs/render/renderer.h"

namespace rawbpf::inline v0::render {

std::unique_ptr<Renderer> make_json(const RenderOptions &, Writer &) { return nullptr; }

} // namespace rawbpf::inline v0::render
