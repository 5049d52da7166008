// SPDX-License-Identifier: MIT
// Result<T>: a value or an Error, and RAWBPF_TRY, which passes the error on.
//
// The interface is that of std::expected, but the Error is allocated on the heap. An Error is three strings, and
// std::expected<T, Error> would hold it in place: a Result of an int would have 120 bytes, and each of the thousand places
// that pass an error on would move and destroy these strings twice, which was a tenth of the executable. With the heap a
// Result is its value and one word, and passing an error on moves one pointer. Only an error costs more: one allocation.
//
// RAWBPF_TRY is a GNU statement expression, which every compiler we support has:
//
//     Map map = RAWBPF_TRY(Map::create(spec));           // returns the Error from the enclosing function
//
// In this tree it is called TRY (fail.h, which also makes Errors).
#pragma once

#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/base/error.h"

namespace rawbpf::inline v0 {

namespace detail {

/// The one owner of an Error, or nothing. What is small enough to vanish into its caller is inlined even where the compiler saves
/// space, since there it is less than the call.
class Boxed {
  public:
    /// Moves the Error to the heap; copies what the other one owns; takes it over (assignment: exchanges); or owns nothing.
    ///@{
    explicit Boxed(Error &&error);
    Boxed(const Boxed &other);
    [[gnu::always_inline]] Boxed() = default;
    [[gnu::always_inline]] Boxed(Boxed &&other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
    [[gnu::always_inline]] Boxed &operator=(Boxed &&other) noexcept { return std::swap(error_, other.error_), *this; }
    ///@}
    Boxed &operator=(const Boxed &) = delete;
    [[gnu::always_inline]] ~Boxed() {
        if (error_) drop(error_);
    }
    /// True when there is an Error.
    explicit operator bool() const { return error_ != nullptr; }
    /// The Error; there must be one.
    [[nodiscard]] Error &operator*() const { return *error_; }

  private:
    static void drop(Error *error) noexcept;

    Error *error_ = nullptr;
};

} // namespace detail

/// Wraps an Error on its way into a Result, as std::unexpected does.
class [[nodiscard]] Unexpected {
  public:
    /// Of an Error, which is moved or copied to the heap, or of one that is there already.
    ///@{
    explicit Unexpected(Error &&error) : box_(std::move(error)) {}
    explicit Unexpected(const Error &error) : box_(Error(error)) {}
    [[gnu::always_inline]] explicit Unexpected(detail::Boxed &&box) noexcept : box_(std::move(box)) {}
    ///@}
    /// The Error, which may be changed.
    [[nodiscard]] Error &error() { return *box_; }
    /// For Result: gives the Error away.
    [[gnu::always_inline]] detail::Boxed &&take() &&noexcept { return std::move(box_); }

  private:
    detail::Boxed box_;
};

template <class T> class [[nodiscard]] Result;

namespace detail {
/// Whether T is a Result.
///@{
template <class T> inline constexpr bool is_result = false;
template <class T> inline constexpr bool is_result<Result<T>> = true;
///@}
/// What a Result<T> may be made of. Another Result is none: each is explicitly a bool, so a Result<bool> of a Result<void> that
/// failed would hold `false` in place of the error. Nor does a pointer or an optional become a bool unseen.
template <class U, class T>
concept MakesValue = !is_result<std::remove_cvref_t<U>> && !std::is_same_v<std::remove_cvref_t<U>, Unexpected> &&
                     (!std::is_same_v<T, bool> || std::is_same_v<std::remove_cvref_t<U>, bool>)&&std::is_constructible_v<T, U>;
} // namespace detail

/// A value or an Error: the part of std::expected<T, Error> that this project uses. True when it has the value. A Result that was
/// moved from may only be destroyed or assigned to.
template <class T> class [[nodiscard]] Result {
  public:
    using value_type = T; ///< as std::expected has it
    /// A value: T(), or one made of `value`. Another Result is refused.
    ///@{
    Result() requires std::is_default_constructible_v<T> : ok_(true) { new (&value_) T(); }
    template <class U = T>
    // Implicit, as in std::expected; the constraint keeps it from hiding the copy. NOLINTNEXTLINE
    requires(detail::MakesValue<U, T>) Result(U &&value) : ok_(true) { new (&value_) T(std::forward<U>(value)); }
    ///@}
    /// The error of fail(), or of another Result's failure().
    [[gnu::always_inline]] Result(Unexpected &&e) noexcept : ok_(false) {
        new (&error_) detail::Boxed(std::move(e).take());
    } // NOLINT
    /// Moves or copies the value, or the Error.
    ///@{
    Result(Result &&other) noexcept : ok_(other.ok_) { construct(std::move(other)); }
    Result(const Result &other) : ok_(other.ok_) {
        if (ok_)
            new (&value_) T(other.value_);
        else
            new (&error_) detail::Boxed(other.error_);
    }
    Result &operator=(Result &&other) noexcept {
        if (this != &other) {
            destroy();
            ok_ = other.ok_;
            construct(std::move(other));
        }
        return *this;
    }
    ///@}
    [[gnu::always_inline]] ~Result() { destroy(); }

    /// True: there is a value; false: an error.
    ///@{
    [[nodiscard]] bool has_value() const { return ok_; }
    explicit operator bool() const { return ok_; }
    ///@}
    /// The value; aborts the program where there is none.
    ///@{
    T &value() & { return check(), value_; }
    const T &value() const & { return check(), value_; }
    T &&value() && { return check(), std::move(value_); }
    ///@}
    /// The value; there must be one, which isn't checked.
    ///@{
    T &operator*() & { return value_; }
    const T &operator*() const & { return value_; }
    T &&operator*() && { return std::move(value_); }
    T *operator->() { return &value_; }
    const T *operator->() const { return &value_; }
    ///@}
    /// The error; there must be one, which isn't checked.
    ///@{
    Error &error() & { return *error_; }
    const Error &error() const & { return *error_; }
    Error &&error() && { return std::move(*error_); }
    ///@}
    /// The value, or `other` converted to T where there is none.
    ///@{
    template <class U> T value_or(U &&other) const & { return ok_ ? value_ : static_cast<T>(std::forward<U>(other)); }
    template <class U> T value_or(U &&other) && { return ok_ ? std::move(value_) : static_cast<T>(std::forward<U>(other)); }
    ///@}

    /// The error, on its way into another Result; there must be one. This Result may only be destroyed afterwards.
    [[gnu::always_inline]] Unexpected failure() && { return Unexpected(std::move(error_)); }

  private:
    void check() const {
        if (!ok_) std::abort();
    }
    void construct(Result &&other) {
        if (ok_)
            new (&value_) T(std::move(other.value_));
        else
            new (&error_) detail::Boxed(std::move(other.error_));
    }
    [[gnu::always_inline]] void destroy() {
        if (!ok_)
            error_.~Boxed();
        else if constexpr (!std::is_trivially_destructible_v<T>)
            value_.~T();
    }
    union {
        T value_;
        detail::Boxed error_;
    };
    bool ok_;
};

/// Success or an Error. True on success.
template <> class [[nodiscard]] Result<void> {
  public:
    using value_type = void; ///< as std::expected has it
    /// Success: `return {};`
    Result() = default;
    /// The error of fail(), or of another Result's failure().
    [[gnu::always_inline]] Result(Unexpected &&e) noexcept : error_(std::move(e).take()) {} // NOLINT
    /// True on success.
    ///@{
    [[nodiscard]] bool has_value() const { return !error_; }
    explicit operator bool() const { return !error_; }
    ///@}
    /// Aborts the program where there is an error.
    void value() const {
        if (error_) std::abort();
    }
    /// The error; there must be one, which isn't checked.
    ///@{
    Error &error() & { return *error_; }
    const Error &error() const & { return *error_; }
    Error &&error() && { return std::move(*error_); }
    ///@}

    /// The error, on its way into another Result; there must be one. This Result may only be destroyed afterwards.
    [[gnu::always_inline]] Unexpected failure() && { return Unexpected(std::move(error_)); }

  private:
    detail::Boxed error_;
};

namespace detail {
/// The value out of a Result that has one; nothing of a Result<void>.
template <class T> T take(Result<T> &r) {
    if constexpr (!std::is_void_v<T>) return std::move(*r);
}
} // namespace detail

} // namespace rawbpf::inline v0

/// The value of a Result, or: return its Error from this function, whose own result must be a Result, too.
#define RAWBPF_TRY(expression)                                                                                                   \
    ({                                                                                                                           \
        auto rawbpf_result_ = (expression);                                                                                      \
        if (!rawbpf_result_) [[unlikely]]                                                                                        \
            return std::move(rawbpf_result_).failure();                                                                          \
        ::rawbpf::detail::take(rawbpf_result_);                                                                                  \
    })
