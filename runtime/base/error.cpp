// Errors as text. strerrorname_np(3) (glibc 2.32) gives the symbolic name, which people search for; the sentence of strerror
// follows it.
#include "runtime/base/error.h"

#include <cerrno>
#include <cstring>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

Errc kind_of_errno(int os) {
    switch (os) {
    case EPERM:
    case EACCES: return Errc::permission;
    case ENOENT:
    case ESRCH:
    case ENXIO:
    case ENODEV: return Errc::not_found;
    case EINVAL:
    case EBADF:
    case ERANGE: return Errc::invalid_argument;
    case ENOSYS:
    case EOPNOTSUPP:
    case E2BIG:
    case 524: return Errc::unsupported; // 524 is the kernel's own ENOTSUPP, which leaks out of bpf(2)
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC: return Errc::no_memory;
    case EBUSY:
    case EAGAIN:
    case EEXIST: return Errc::busy;
    case EIO:
    case EPIPE:
    case EISDIR:
    case ENOTDIR:
    case EROFS: return Errc::io;
    default: return Errc::kernel;
    }
}

// Another C library may have other numbers (WebAssembly's has), so that its words would be wrong.
#ifdef __GLIBC__
static const char *c_library_name(int os) { return strerrorname_np(os); }
static const char *c_library_sentence(int os) { return strerrordesc_np(os); }
#else
static const char *c_library_name(int) { return nullptr; }
static const char *c_library_sentence(int) { return nullptr; }
#endif

std::string errno_name(int os) {
    if (os == 524) return "ENOTSUPP";
    const char *name = c_library_name(os);
    return name ? std::string(name) : format("errno {}", os);
}

std::string Error::message() const {
    if (os == 0 || kind == Errc::rejected) return context; // the verifier's words say more than "Permission denied"
    const char *sentence = os == 524 ? "Operation is not supported" : c_library_sentence(os);
    std::string out = context;
    if (!out.empty()) out += ": ";
    out += sentence ? sentence : "unknown error";
    append(out, " ({})", errno_name(os));
    return out;
}

Error::Error() = default;
Error::Error(Errc kind, int os, std::string context, std::string hint, std::string log)
    : kind(kind), os(os), context(std::move(context)), hint(std::move(hint)), log(std::move(log)) {}
Error::Error(const Error &) = default;
Error::Error(Error &&) noexcept = default;
Error &Error::operator=(const Error &) = default;
Error &Error::operator=(Error &&) noexcept = default;
Error::~Error() = default;

Error make_error(Errc kind, std::string context, std::string hint) {
    return Error{kind, 0, std::move(context), std::move(hint), {}};
}

Error os_error(int os, std::string context, std::string hint) {
    return Error{kind_of_errno(os), os, std::move(context), std::move(hint), {}};
}

detail::Boxed::Boxed(Error &&error) : error_(new Error(std::move(error))) {}
detail::Boxed::Boxed(const Boxed &other) : error_(other.error_ ? new Error(*other.error_) : nullptr) {}
void detail::Boxed::drop(Error *error) noexcept { delete error; }

Unexpected vfail(Errc kind, fmt::string_view text, fmt::format_args args) {
    return Unexpected(make_error(kind, format_from(text, args)));
}
Unexpected vfail_os(int os, fmt::string_view text, fmt::format_args args) {
    return Unexpected(os_error(os, format_from(text, args)));
}
void vin_context(Error &error, fmt::string_view text, fmt::format_args args) {
    (void)in_context(std::move(error), format_from(text, args));
}

Error &&in_context(Error &&error, std::string_view phrase) {
    error.context = error.context.empty() ? std::string(phrase) : format("{}: {}", phrase, error.context);
    return std::move(error);
}

} // namespace rawbpf::inline v0
