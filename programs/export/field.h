// Fields of HTTP's headers and of lists in them: blanks around them, letters of either case, and what may not be in them (RFC
// 9110, 5.5 and 5.6). PURE.
#pragma once

#include <algorithm>
#include <string_view>

namespace rawbpf::inline v0::telemetry {

/// Without blanks and tabs at either end.
[[nodiscard]] inline std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}
/// Whether they are the same but for the case of ASCII's letters.
[[nodiscard]] inline bool same(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return lower(x) == lower(y); });
}
/// Whether there is a control character in it; a tab is none here.
[[nodiscard]] inline bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

} // namespace rawbpf::inline v0::telemetry
