// How this tree makes Errors and passes them on. Not installed: the texts are formatted by fmt, which stays out of the library's
// headers.
//
//     return fail(Errc::bad_input, "section {} ends early", name);
//     Fd fd = TRY(open_file(path));                       // returns the Error from the enclosing function
//     Fd fd = TRY_IN(open_file(path), "reading {}", path) // ... with one phrase in front
#pragma once

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/format.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// What fail(), fail_os() and TRY_IN call: one copy of the formatting, whatever the arguments.
///@{
[[nodiscard, gnu::visibility("hidden")]] Unexpected vfail(Errc kind, fmt::string_view text, fmt::format_args args);
[[nodiscard, gnu::visibility("hidden")]] Unexpected vfail_os(int os, fmt::string_view text, fmt::format_args args);
[[gnu::visibility("hidden")]] void vin_context(Error &error, fmt::string_view text, fmt::format_args args);
///@}

/// An error without an errno: `return fail(Errc::bad_input, "section {} ends early", name);`. The text is fmt's, checked at
/// compile time.
template <class... Args> [[nodiscard]] Unexpected fail(Errc kind, fmt::format_string<Args...> text, Args &&...args) {
    return vfail(kind, text, fmt::make_format_args(args...));
}

/// The same with the errno of a system call; the kind follows from it (kind_of_errno()).
template <class... Args> [[nodiscard]] Unexpected fail_os(int os, fmt::format_string<Args...> text, Args &&...args) {
    return vfail_os(os, text, fmt::make_format_args(args...));
}

namespace detail {
/// Puts a formatted phrase in front of the error's context.
template <class... Args> void add_context(Error &error, fmt::format_string<Args...> text, Args &&...args) {
    vin_context(error, text, fmt::make_format_args(args...));
}
} // namespace detail

} // namespace rawbpf::inline v0

/// RAWBPF_TRY under the name that it has in this tree.
#define TRY(expression) RAWBPF_TRY(expression)

/// The same with one formatted phrase put in front of the error's context: TRY_IN(open_file(path), "reading {}", path).
#define TRY_IN(expression, ...)                                                                                                  \
    ({                                                                                                                           \
        auto rawbpf_result_ = (expression);                                                                                      \
        if (!rawbpf_result_) [[unlikely]] {                                                                                      \
            ::rawbpf::detail::add_context(rawbpf_result_.error(), __VA_ARGS__);                                                  \
            return std::move(rawbpf_result_).failure();                                                                          \
        }                                                                                                                        \
        ::rawbpf::detail::take(rawbpf_result_);                                                                                  \
    })
