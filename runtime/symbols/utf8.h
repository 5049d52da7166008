// One Unicode scalar value as UTF-8.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::symbols {

/// Appends `value`; false (and nothing appended) for surrogates and what lies above 0x10ffff.
inline bool append_utf8(std::string &out, uint32_t value) {
    if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return false;
    if (value < 0x80) {
        out += static_cast<char>(value);
        return true;
    }
    int more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3; // continuation bytes
    constexpr unsigned kLead[] = {0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(kLead[more] | value >> (6 * more));
    for (int shift = 6 * (more - 1); shift >= 0; shift -= 6) out += static_cast<char>(0x80 | (value >> shift & 0x3f));
    return true;
}

} // namespace rawbpf::inline v0::symbols
