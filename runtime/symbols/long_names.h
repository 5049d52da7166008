// A bound for names that somebody else chose.
//
// A JIT's map, a program's symbol table and a capture may hold names of any length, and a name is written again for every frame
// that it is shown in: one of 20 MB in a stack of a hundred frames made 17 GB of JSON out of a second's profile. The longest
// names that people's compilers make (C++ templates in templates) are of some hundred bytes; c++filt's own limit is of the order
// of this one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::symbols {

inline constexpr size_t kLongestName = 2048; ///< bytes

/// The name, or its beginning and "..." where it is longer than kLongestName. No character of UTF-8 is cut in two.
[[nodiscard]] inline std::string within_bound(std::string_view name) {
    if (name.size() <= kLongestName) return std::string(name);
    size_t end = kLongestName - 3;
    for (int back = 0; back < 3 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80; ++back) --end;
    return std::string(name.substr(0, end)) + "...";
}

} // namespace rawbpf::inline v0::symbols
