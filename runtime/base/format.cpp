// Only this file compiles fmt's formatting engine. FMT_HEADER_ONLY makes its functions inline here, so that no libfmt is
// needed at link time, static or shared. format.h says why no other file includes the full header.
#define FMT_HEADER_ONLY 1
// fmt's {:L} is not used here; without this one definition it would pull std::locale, and with it half a megabyte of facets, into
// a static executable.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
// The one floating-point type that is formatted here is double.
#define FMT_USE_FLOAT 0
#define FMT_USE_LONG_DOUBLE 0
// A broken assumption of fmt's ends the program; its own way to say so prints through stdio.
#define FMT_ASSERT(condition, message) ((condition) ? (void)0 : ((void)(message), __builtin_trap()))
#include "runtime/base/format.h"

#include <fmt/format.h>

namespace rawbpf::inline v0 {

void vformat_to(std::string &out, fmt::string_view text, fmt::format_args args) {
    fmt::memory_buffer buffer;
    fmt::vformat_to(fmt::appender(buffer), text, args);
    out.append(buffer.data(), buffer.size());
}

std::string format_from(fmt::string_view text, fmt::format_args args) {
    std::string out;
    vformat_to(out, text, args);
    return out;
}

} // namespace rawbpf::inline v0
