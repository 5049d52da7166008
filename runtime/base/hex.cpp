// Two digits a byte: half a byte each, the upper one first.
#include "runtime/base/hex.h"

#include <span>

namespace rawbpf::inline v0 {

std::string hex_text(Bytes bytes, std::string_view between) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    out.reserve(bytes.size() * (2 + between.size()));
    for (const std::byte byte : bytes) {
        if (!out.empty()) out += between;
        out += kDigits[static_cast<unsigned>(byte) >> 4];
        out += kDigits[static_cast<unsigned>(byte) & 15];
    }
    return out;
}
std::string hex_text(std::string_view bytes, std::string_view between) {
    return hex_text(std::as_bytes(std::span(bytes.data(), bytes.size())), between);
}

} // namespace rawbpf::inline v0
