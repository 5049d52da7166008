// Hexadecimal digits, in input of people and in symbol tables; and bytes as such digits.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0 {

/// Whether the text is a number: decimal digits, and nothing else.
[[nodiscard]] constexpr bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// The value of a hex digit, or -1.
[[nodiscard]] constexpr int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/// Two digits a byte, `between` between two bytes: "2a00", "2a 00".
[[nodiscard]] std::string hex_text(Bytes bytes, std::string_view between = {});
/// The same of what others keep as text.
[[nodiscard]] std::string hex_text(std::string_view bytes, std::string_view between = {});

} // namespace rawbpf::inline v0
