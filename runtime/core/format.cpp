// The core's formatting, in place of base/format.cpp: without fmt's engine (plain_format.h).
#include "runtime/base/format.h"

#include "runtime/core/plain_format.h"

namespace rawbpf::inline v0 {

void vformat_to(std::string &out, fmt::string_view text, fmt::format_args args) { plain_format_to(out, text, args); }

std::string format_from(fmt::string_view text, fmt::format_args args) {
    std::string out;
    plain_format_to(out, text, args);
    return out;
}

} // namespace rawbpf::inline v0
