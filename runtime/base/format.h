// Formatting without its compile time in every file.
//
// fmt's full header costs two seconds per file; its core header, which checks the format string at compile time, costs 0.1 s.
// So all files include only the core header, and format.cpp compiles the formatting engine once. Nothing links against libfmt.
#pragma once

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif
#include <string>
#include <string_view>
#include <type_traits>

namespace rawbpf::inline v0 {

/// Appends the formatted text to `out`. Hidden: a shared library's names are without fmt.
[[gnu::visibility("hidden")]] void vformat_to(std::string &out, fmt::string_view text, fmt::format_args args);
/// The formatted text as a new string.
[[nodiscard, gnu::visibility("hidden")]] std::string format_from(fmt::string_view text, fmt::format_args args);

/// Whether each version of fmt can format it. fmt 10 and newer refuse a class that only converts to a string_view; fmt 9 takes
/// it.
template <class T> inline constexpr bool formats_everywhere =
    !std::is_class_v<T> || !std::is_convertible_v<const T &, std::string_view> || std::is_same_v<T, std::string> ||
    std::is_same_v<T, std::string_view>;

/// fmt's arguments, for a call that ends before they do.
template <class... Args> auto format_arguments(Args &...args) {
    static_assert((formats_everywhere<std::remove_cv_t<Args>> && ...),
                  "a class that only converts to a string_view: pass the string_view itself");
    return fmt::make_format_args(args...);
}

/// `append(out, "{} of {:#x}", n, x)`: fmt's format strings, checked at compile time.
template <class... Args> void append(std::string &out, fmt::format_string<Args...> text, Args &&...args) {
    vformat_to(out, text, format_arguments(args...));
}

/// The formatted text as a new string.
template <class... Args> [[nodiscard]] std::string format(fmt::format_string<Args...> text, Args &&...args) {
    return format_from(text, format_arguments(args...));
}

} // namespace rawbpf::inline v0
