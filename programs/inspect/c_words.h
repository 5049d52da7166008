// Names and strings as C and C++ take them. PURE.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::inspect {

/// What isn't a letter or a digit becomes '_'; never empty, never begins with a digit.
[[nodiscard]] std::string identifier(std::string_view text);
/// ".data.config" -> "data_config".
[[nodiscard]] std::string section_word(std::string_view section);
/// Text for a comment of C: what would end it, and lines, taken apart.
[[nodiscard]] std::string commented(std::string_view text);
/// A string literal: quotes, backslashes and what isn't printable escaped.
[[nodiscard]] std::string quoted(std::string_view text);

/// A name that isn't taken yet, and is then: "x", "x_2", "x_3".
[[nodiscard]] std::string unique(std::set<std::string> &taken, std::string wanted);
/// The elements of an array of bytes, in lines: "1,2,".
void append_bytes(std::string &out, Bytes bytes);

} // namespace rawbpf::inline v0::inspect
