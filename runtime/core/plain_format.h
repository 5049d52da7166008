// fmt's format strings without fmt's engine: what the loader's messages use.
#pragma once

#include <string>

#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

/// Appends the text as vformat_to() does. Of fmt's language it has integers ({} {:x} {:#x} {:X} {:o} {:b} {:c} {:d}), text,
/// characters, truth values and pointers, with fill, alignment, sign, zeros, width and precision, also as arguments ({:<{}});
/// width counts characters of UTF-8. No floating point: a program that formats one with this is ended (abort). PURE.
void plain_format_to(std::string &out, fmt::string_view text, fmt::format_args args);

} // namespace rawbpf::inline v0
