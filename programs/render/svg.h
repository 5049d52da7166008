// What every flame graph carries inside it: the style sheet and the script, as text for a CDATA section.
#pragma once

#include <string_view>

namespace rawbpf::inline v0::render {

extern const std::string_view kFlameGraphStyle;
extern const std::string_view kFlameGraphScript;

} // namespace rawbpf::inline v0::render
