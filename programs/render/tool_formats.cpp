// From a format's name to the renderer that writes it: those of renderer.cpp, and the other tools'.
#include "programs/render/tool_formats.h"

#include <iterator>

#include "programs/render/json_line.h"

namespace rawbpf::inline v0::render {

Result<std::unique_ptr<Renderer>> make_trace_renderer(Format format, const RenderOptions &options, const TraceOptions &traces,
                                                      Writer &out) {
    if (format == Format::pprof) return make_pprof(traces, out);
    if (format == Format::perf_script) return make_perf_script(traces, out);
    return make_any_renderer(format, options, out);
}

Result<std::unique_ptr<Renderer>> make_any_renderer(Format format, const RenderOptions &options, Writer &out) {
    if (options.difference) {
        if (format == Format::folded) return make_folded_difference(options, out);
        if (format == Format::svg) return make_svg_difference(options, out);
        return Unexpected(make_error(Errc::unsupported, "differences are shown by folded and svg"));
    }
    if (!for_other_tools(format)) return make_renderer(format, options, out);
    if (is_json(format) && !writes_json()) return Unexpected(make_error(Errc::unsupported, "this build writes no JSON"));
    using Make = std::unique_ptr<Renderer> (*)(const RenderOptions &, Writer &);
    constexpr Make makers[] = {[](const RenderOptions &, Writer &to) { return make_pprof({}, to); },
                               [](const RenderOptions &, Writer &to) { return make_perf_script({}, to); }, make_speedscope,
                               make_firefox};
    static_assert(std::size(makers) == std::size(kFormatNames) - static_cast<size_t>(kFirstForTools));
    return makers[static_cast<size_t>(format) - static_cast<size_t>(kFirstForTools)](options, out);
}

} // namespace rawbpf::inline v0::render
