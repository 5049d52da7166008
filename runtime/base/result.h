// Result<T>: a value or an Error, and TRY, which passes the error on.
//
// std::expected where the standard library has it (g++ 12, clang 19); elsewhere a small class with the part of its interface
// that this project uses. TRY is a GNU statement expression, which every compiler we support has:
//
//     Fd fd = TRY(open_file(path));                      // returns the Error from the enclosing function
//     Fd fd = TRY_IN(open_file(path), "reading {}", path) // ... with one phrase in front
#pragma once

#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>
#include <version>

#include "runtime/base/error.h"
#include "runtime/base/format.h"

#if defined(__cpp_lib_expected) && !defined(RAWBPF_OWN_EXPECTED)
#include <expected>
#define RAWBPF_STD_EXPECTED 1
#endif

namespace rawbpf::inline v0 {

#ifdef RAWBPF_STD_EXPECTED

template <class T> using Result = std::expected<T, Error>;
using Unexpected = std::unexpected<Error>;

#else

/// Wraps an Error on its way into a Result, as std::unexpected does.
class Unexpected {
  public:
    explicit Unexpected(Error error) : error_(std::move(error)) {}
    Error &&take() && { return std::move(error_); }
    const Error &error() const { return error_; }

  private:
    Error error_;
};

/// The part of std::expected<T, Error> that this project uses.
template <class T> class [[nodiscard]] Result {
  public:
    using value_type = T;
    Result() requires std::is_default_constructible_v<T> : ok_(true) { new (&value_) T(); }
    template <class U = T>
    requires(!std::is_same_v<std::remove_cvref_t<U>, Result> && !std::is_same_v<std::remove_cvref_t<U>, Unexpected> &&
             // Implicit, as in std::expected; the constraint keeps it from hiding the copy. NOLINTNEXTLINE
             std::is_constructible_v<T, U>) Result(U &&value)
        : ok_(true) {
        new (&value_) T(std::forward<U>(value));
    }
    Result(Unexpected e) : ok_(false) { new (&error_) Error(std::move(e).take()); } // NOLINT
    Result(Result &&other) noexcept : ok_(other.ok_) { construct(std::move(other)); }
    Result(const Result &other) : ok_(other.ok_) {
        if (ok_)
            new (&value_) T(other.value_);
        else
            new (&error_) Error(other.error_);
    }
    Result &operator=(Result &&other) noexcept {
        if (this != &other) {
            destroy();
            ok_ = other.ok_;
            construct(std::move(other));
        }
        return *this;
    }
    ~Result() { destroy(); }

    [[nodiscard]] bool has_value() const { return ok_; }
    explicit operator bool() const { return ok_; }
    T &value() & { return check(), value_; }
    const T &value() const & { return check(), value_; }
    T &&value() && { return check(), std::move(value_); }
    T &operator*() & { return value_; }
    const T &operator*() const & { return value_; }
    T &&operator*() && { return std::move(value_); }
    T *operator->() { return &value_; }
    const T *operator->() const { return &value_; }
    Error &error() & { return error_; }
    const Error &error() const & { return error_; }
    Error &&error() && { return std::move(error_); }
    template <class U> T value_or(U &&other) const & { return ok_ ? value_ : static_cast<T>(std::forward<U>(other)); }
    template <class U> T value_or(U &&other) && { return ok_ ? std::move(value_) : static_cast<T>(std::forward<U>(other)); }

  private:
    void check() const {
        if (!ok_) std::abort();
    }
    void construct(Result &&other) {
        if (ok_)
            new (&value_) T(std::move(other.value_));
        else
            new (&error_) Error(std::move(other.error_));
    }
    void destroy() {
        if (ok_)
            value_.~T();
        else
            error_.~Error();
    }
    bool ok_;
    union {
        T value_;
        Error error_;
    };
};

template <> class [[nodiscard]] Result<void> {
  public:
    using value_type = void;
    Result() = default;
    Result(Unexpected e) : ok_(false), error_(std::move(e).take()) {} // NOLINT
    [[nodiscard]] bool has_value() const { return ok_; }
    explicit operator bool() const { return ok_; }
    void value() const {
        if (!ok_) std::abort();
    }
    Error &error() & { return error_; }
    const Error &error() const & { return error_; }
    Error &&error() && { return std::move(error_); }

  private:
    bool ok_ = true;
    Error error_;
};

#endif

/// What fail() and fail_os() call: one copy of the formatting, whatever the arguments.
[[nodiscard]] Error vmake_error(Errc kind, fmt::string_view text, fmt::format_args args);
[[nodiscard]] Error vmake_os_error(int os, fmt::string_view text, fmt::format_args args);

/// `return fail(Errc::bad_input, "section {} ends early", name);`
template <class... Args> [[nodiscard]] Unexpected fail(Errc kind, fmt::format_string<Args...> text, Args &&...args) {
    return Unexpected(vmake_error(kind, text, fmt::make_format_args(args...)));
}

/// The same, with the errno of a system call.
template <class... Args> [[nodiscard]] Unexpected fail_os(int os, fmt::format_string<Args...> text, Args &&...args) {
    return Unexpected(vmake_os_error(os, text, fmt::make_format_args(args...)));
}

namespace detail {
template <class T> T take(Result<T> &r) {
    if constexpr (!std::is_void_v<T>) return std::move(*r);
}
} // namespace detail

} // namespace rawbpf::inline v0

/// The value of a Result, or: return its Error from this function.
#define TRY(expression)                                                                                                          \
    ({                                                                                                                           \
        auto rawbpf_result_ = (expression);                                                                                      \
        if (!rawbpf_result_) [[unlikely]]                                                                                        \
            return ::rawbpf::Unexpected(std::move(rawbpf_result_).error());                                                      \
        ::rawbpf::detail::take(rawbpf_result_);                                                                                  \
    })

/// The same, with one formatted phrase put in front of the error's context.
#define TRY_IN(expression, ...)                                                                                                  \
    ({                                                                                                                           \
        auto rawbpf_result_ = (expression);                                                                                      \
        if (!rawbpf_result_) [[unlikely]]                                                                                        \
            return ::rawbpf::Unexpected(::rawbpf::in_context(std::move(rawbpf_result_).error(), ::rawbpf::format(__VA_ARGS__))); \
        ::rawbpf::detail::take(rawbpf_result_);                                                                                  \
    })
