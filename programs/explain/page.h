// What every page carries inside it: the style sheet and the script, as text.
#pragma once

#include <string_view>

namespace rawbpf::inline v0::explain {

extern const std::string_view kPageStyle;
extern const std::string_view kPageBody;
extern const std::string_view kPageScript;

} // namespace rawbpf::inline v0::explain
