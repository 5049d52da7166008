// From a format's name to the renderer that writes it: the one list of rawbpf's own formats (tool_formats.cpp adds
// other tools' formats).
#include "programs/render/renderer.h"

#include <iterator>

namespace rawbpf::inline v0::render {

std::optional<Format> format_named(std::string_view name) {
    for (size_t i = 0; i < std::size(kFormats); ++i)
        if (kFormats[i].name == name) return static_cast<Format>(i);
    return {};
}

Result<std::unique_ptr<Renderer>> make_renderer(Format format, const RenderOptions &options, Writer &out) {
    using Make = std::unique_ptr<Renderer> (*)(const RenderOptions &, Writer &);
#define RAWBPF_MAKER_own(maker) maker
#define RAWBPF_MAKER_tools(maker) nullptr // unnamed, so that it isn't linked
#define RAWBPF_MAKER(format, name, writes, json, whose, of) RAWBPF_MAKER_##whose(make_##format),
    constexpr Make makers[] = {RAWBPF_FORMATS(RAWBPF_MAKER)};
#undef RAWBPF_MAKER
    if (for_other_tools(format)) return Unexpected(make_error(Errc::unsupported, "this format is another tool's"));
    return makers[static_cast<size_t>(format)](options, out);
}

} // namespace rawbpf::inline v0::render
