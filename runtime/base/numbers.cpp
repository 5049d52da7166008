// Times are read by hand. std::from_chars for double came with g++ 11, but not with every library that clang uses, and
// libstdc++'s asks for the locale: a static executable, which has none (cli/static), would not link.
#include "runtime/base/numbers.h"

#include <cstdint>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0 {

Result<double> parse_seconds(std::string_view text) {
    constexpr std::string_view expected = "isn't a time (expected: 3, 0.5, 10us, 200ms, 5s, 2m or 1h)";
    size_t digits = text.find_first_not_of("0123456789.");
    std::string_view number = text.substr(0, digits), unit = digits == text.npos ? "" : text.substr(digits);
    double factor = unit.empty() || unit == "s" ? 1
                    : unit == "ms"              ? 1e-3
                    : unit == "us"              ? 1e-6
                    : unit == "ns"              ? 1e-9
                    : unit == "m"               ? 60
                    : unit == "h"               ? 3600
                                                : 0;
    size_t point = number.find('.');
    std::string_view whole = number.substr(0, point), part = point == number.npos ? "" : number.substr(point + 1);
    uint64_t w = 0, p = 0;
    bool good = factor != 0 && (!whole.empty() || !part.empty()) && (whole.empty() || parse_whole(whole, w)) &&
                (part.empty() || parse_whole(part, p)) && part.size() <= 9 && w <= 1'000'000'000;
    if (!good) return fail(Errc::invalid_argument, "'{}' {}", text, expected);
    double fraction = static_cast<double>(p);
    for (size_t i = 0; i < part.size(); ++i) fraction /= 10;
    return (static_cast<double>(w) + fraction) * factor;
}

} // namespace rawbpf::inline v0
