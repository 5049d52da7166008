// From a format's name to the renderer that writes it: those of renderer.cpp, and the other tools'.
#include "programs/render/tool_formats.h"

#include "programs/render/json_line.h"

namespace rawbpf::inline v0::render {

Result<std::unique_ptr<Renderer>> make_any_renderer(Format format, const RenderOptions &options, Writer &out) {
    if (options.difference) {
        if (format == Format::folded) return make_folded_difference(options, out);
        if (format == Format::svg) return make_svg_difference(options, out);
        return Unexpected(make_error(Errc::unsupported, "differences are shown by folded and svg"));
    }
    if (for_other_tools(format) && is_json(format) && !writes_json())
        return Unexpected(make_error(Errc::unsupported, "this build writes no JSON"));
    using Make = std::unique_ptr<Renderer> (*)(const RenderOptions &, Writer &);
#define RAWBPF_MAKER(format, ...) make_##format,
    constexpr Make makers[] = {RAWBPF_FORMATS(RAWBPF_MAKER)};
#undef RAWBPF_MAKER
    return makers[static_cast<size_t>(format)](options, out);
}

} // namespace rawbpf::inline v0::render
