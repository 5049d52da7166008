// Numbers and times as people write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "asm/int128.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// Whether the whole text is a number in that base that `out` can hold; `out` is then that number. No blanks, no `+`, no `0x`.
template <class T> [[nodiscard]] bool parse_whole(std::string_view text, T &out, int base = 10) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// The same as a value; nullopt: it is none.
template <class T> [[nodiscard]] std::optional<T> whole_number(std::string_view text, int base = 10) {
    T out{};
    return parse_whole(text, out, base) ? std::optional<T>(out) : std::nullopt;
}
/// The same with a base that the text says: "0x1f" or "31".
template <class T> [[nodiscard]] std::optional<T> whole_number_or_hex(std::string_view text) {
    return text.starts_with("0x") ? whole_number<T>(text.substr(2), 16) : whole_number<T>(text);
}

/// Whether a real number has no fraction; infinity has none. (std::floor and std::modf are libm's, or a linker takes them from
/// there; no command needs libm: see tests/size/stated.)
template <class Real> [[nodiscard]] bool is_whole(Real value) {
    constexpr int kBits = std::numeric_limits<Real>::digits; // 53 to 113: a number of more bits has no fraction
    constexpr Real kAllAreWhole =
        static_cast<Real>(uint64_t{1} << kBits / 2) * static_cast<Real>(uint64_t{1} << (kBits - kBits / 2));
    if (!(value > -kAllAreWhole && value < kAllAreWhole)) return value == value;
    using Whole = std::conditional_t<(kBits < 64), int64_t, Int128>;
    return static_cast<Real>(static_cast<Whole>(value)) == value;
}

/// "3", "0.5", "10us", "200ms", "5s", "2m", "1h" as seconds; invalid_argument for anything else, and below 0.
[[nodiscard]] Result<double> parse_seconds(std::string_view text);

} // namespace rawbpf::inline v0
