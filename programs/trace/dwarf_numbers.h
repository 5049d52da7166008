// Numbers in DWARF's sections, which anybody may have written: both stop at the end of the bytes. PURE.
#pragma once

#include <cstdint>

#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::trace {

/// `size` bytes at `at`, the least first, which moves behind them. False past the end.
[[nodiscard]] inline bool read_number(Bytes from, uint64_t &at, size_t size, uint64_t &out) {
    if (at > from.size() || from.size() - at < size) return false;
    out = 0;
    for (size_t i = 0; i < size; ++i) out |= uint64_t{static_cast<uint8_t>(from[at + i])} << (8 * i);
    at += size;
    return true;
}

/// LEB128 (DWARF 5, 7.6) of ten bytes at most; bits beyond the 64th are dropped. False past the end, or where it is longer.
[[nodiscard]] inline bool read_leb(Bytes from, uint64_t &at, uint64_t &out, bool with_sign = false) {
    out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint64_t byte = 0;
        if (!read_number(from, at, 1, byte)) return false;
        if (shift < 64) out |= (byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if (with_sign && (byte & 0x40) && shift + 7 < 64) out |= ~uint64_t{0} << (shift + 7);
        return true;
    }
    return false;
}

} // namespace rawbpf::inline v0::trace
