// The core's formatting says what fmt's engine says, for all that the library's messages use.
#include "runtime/core/plain_format.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "tests/support/test.h"

using namespace rawbpf;

namespace {

template <class... Args> std::string plain(fmt::string_view text, const Args &...args) {
    std::string out = "> ";
    plain_format_to(out, text, fmt::make_format_args(args...));
    return out.substr(2);
}
template <class... Args> std::string by_fmt(fmt::string_view text, const Args &...args) {
    return format_from(text, fmt::make_format_args(args...));
}
// Each specification with each argument, between other text.
template <class... Args> void same(std::initializer_list<std::string_view> specs, const Args &...args) {
    for (const std::string_view spec : specs) {
        const std::string text = "a{{}}b " + std::string(spec) + " |";
        CAPTURE(text);
        (CHECK(plain(text, args) == by_fmt(text, args)), ...);
    }
}

} // namespace

TEST_CASE("plain format: integers") {
    same({"{}",    "{:d}",   "{:x}",  "{:X}",   "{:#x}",  "{:#X}",   "{:o}",    "{:#o}",    "{:b}", "{:#b}", "{:5}",
          "{:<5}", "{:>12}", "{:^9}", "{:*^9}", "{:02x}", "{:016x}", "{:#04x}", "{:#010x}", "{0}",  "{0:x}"},
         0, 1, -1, 42, -77, 0u, 255u, int64_t{-5}, std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max(),
         uint8_t{7}, int16_t{-300});
}

TEST_CASE("plain format: signs") { same({"{:+}", "{: }", "{:+5}", "{:+05}", "{:-}"}, 0, 42, -77, int64_t{1} << 40); }

TEST_CASE("plain format: text, characters, truth values, pointers") {
    same({"{}", "{:s}", "{:<8}", "{:>8}", "{:^8}", "{:-<8}", "{:.2}", "{:>6.3}", "{:.0}"}, std::string("name"),
         std::string_view(), "text", std::string_view("gr\xc3\xbc\xc3\x9f"));
    same({"{:\xc2\xb7<8}"}, std::string("name"));
    same({"{}", "{:c}", "{:<3}", "{:>3}"}, 'x', '{');
    same({"{:d}", "{:x}"}, 'x');
    same({"{}", "{:>7}", "{:d}"}, true, false);
    same({"{}", "{:>14}"}, static_cast<const void *>(nullptr));
}

TEST_CASE("plain format: several arguments, widths that are arguments") {
    CHECK(plain("{} of {:#x}: {:<{}}|", "this", 255, "x", 4) == by_fmt("{} of {:#x}: {:<{}}|", "this", 255, "x", 4));
    CHECK(plain("{1} {0} {1:>{0}}", 5, "x") == by_fmt("{1} {0} {1:>{0}}", 5, "x"));
    CHECK(plain("{:.{}}|", "abcdef", 3) == "abc|");
    CHECK(plain("no field, }} and {{") == "no field, } and {");
    CHECK(plain("").empty());
}
