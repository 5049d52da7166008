// Numbers as text, where a million of them are written a second.
#pragma once

#include <cstdint>
#include <string>

namespace rawbpf::inline v0::render {

/// 577
void append_decimal(std::string &out, uint64_t number);
/// 0x1f, and 0x0 of nothing.
void append_hex(std::string &out, uint64_t number);
/// The lowest `digits` decimal digits, with zeros in front: 042. At most 20.
void append_padded(std::string &out, uint64_t number, unsigned digits);

} // namespace rawbpf::inline v0::render
