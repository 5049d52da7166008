// From a format's name to the renderer that writes it: the one list of formats.
#include "programs/render/renderer.h"

#include <iterator>

namespace rawbpf::inline v0::render {

std::optional<Format> format_named(std::string_view name) {
    for (size_t i = 0; i < std::size(kFormatNames); ++i)
        if (kFormatNames[i] == name) return static_cast<Format>(i);
    return {};
}

Result<std::unique_ptr<Renderer>> make_renderer(Format format, const RenderOptions &options, Writer &out) {
    using Make = std::unique_ptr<Renderer> (*)(const RenderOptions &, Writer &);
    constexpr Make makers[] = {make_table, make_folded, make_folded_ext, make_json, make_svg, make_top};
    static_assert(std::size(makers) == std::size(kFormatNames));
    std::unique_ptr<Renderer> renderer = makers[static_cast<size_t>(format)](options, out);
    if (!renderer)
        return Unexpected(make_error(Errc::unsupported, "this build writes no JSON",
                                     "build rawbpf with -Djson=enabled (it needs nlohmann-json), or use -f folded-ext"));
    return renderer;
}

} // namespace rawbpf::inline v0::render
