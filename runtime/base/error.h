// SPDX-License-Identifier: MIT
// Errors.
//
// A caller branches on `kind`; a person reads `message()`. Each layer that passes an error on adds one phrase in front
// ("loading program profile: creating map events: ..."), so the text reads from the outside in, like a stack trace.
#pragma once

#include <string>
#include <string_view>

namespace rawbpf::inline v0 {

/// The kinds of failure a caller may want to tell apart.
enum class Errc {
    invalid_argument, ///< the caller asked for something that makes no sense
    not_found,        ///< a file, symbol, type, process or map that isn't there
    permission,       ///< these privileges can't do it (EPERM, EACCES)
    unsupported,      ///< this kernel, machine or build can't do it
    bad_input,        ///< a file or byte stream is malformed; context names file, section, offset
    rejected,         ///< the verifier refused a program; `log` holds what it said
    io,               ///< reading or writing failed
    busy,             ///< somebody else holds it, or it can't be done now
    no_memory,        ///< out of memory, or over a limit
    kernel,           ///< any other errno from a system call
    internal,         ///< a broken invariant of ours
};

/// One failure. Cheap to move; carries everything needed to explain it.
///
/// Its moves and its end are out of line on purpose: three strings moved inline cost 200 bytes of code at each of the thousand
/// places that pass an error on, a third of the library's size.
struct Error {
    /// Errc::internal without a text; or all fields. make_error() and os_error() are shorter.
    ///@{
    Error();
    Error(Errc kind, int os, std::string context, std::string hint = {}, std::string log = {});
    ///@}
    /// Copies the texts, or moves them: the other Error then has its kind and errno, and unspecified texts.
    ///@{
    Error(const Error &);
    Error(Error &&) noexcept;
    Error &operator=(const Error &);
    Error &operator=(Error &&) noexcept;
    ///@}
    ~Error();

    Errc kind = Errc::internal; ///< what a caller branches on
    int os = 0;                 ///< errno, or 0 when the failure isn't the kernel's
    std::string context;        ///< what was being done, outermost first, without a trailing full stop
    std::string hint;           ///< what would help, or empty
    std::string log;            ///< the verifier's log, or empty

    /// "context: No such file or directory (ENOENT)", without hint and log. Where there is no errno, and for Errc::rejected, only
    /// the context.
    [[nodiscard]] std::string message() const;
};

/// An error of ours, with no errno.
[[nodiscard]] Error make_error(Errc kind, std::string context, std::string hint = {});

/// An error from the kernel; the kind follows from errno (kind_of_errno()).
[[nodiscard]] Error os_error(int os, std::string context, std::string hint = {});

/// Puts one phrase in front of the context: "phrase: context". Changes `error` and returns it.
[[nodiscard]] Error &&in_context(Error &&error, std::string_view phrase);

/// The kind that an errno maps to when nothing better is known; Errc::kernel for an errno without a kind of its own.
[[nodiscard]] Errc kind_of_errno(int os);

/// "ENOENT" for 2, "ENOTSUPP" for 524, which is the kernel's own; "errno 4711" for one without a name.
[[nodiscard]] std::string errno_name(int os);

} // namespace rawbpf::inline v0
