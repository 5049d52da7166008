#include "programs/languages/perl/names.h"

#include <algorithm>
#include <string_view>

namespace rawbpf::inline v0::languages::perl {
namespace {

constexpr uint8_t kUtf8 = 1; // of the byte behind a name's zero

std::string from_latin1(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        if (byte < 0x80) {
            out += c;
        } else {
            out += static_cast<char>(0xc0 | byte >> 6);
            out += static_cast<char>(0x80 | (byte & 0x3f));
        }
    }
    return out;
}

} // namespace

std::string name_of(Bytes object) {
    if (object.size() <= kName) return {};
    const auto length = load<int32_t>(object.data() + kNameLength);
    if (length <= 0) return {};
    const size_t there = object.size() - kName, size = static_cast<size_t>(length);
    const std::string_view all(reinterpret_cast<const char *>(object.data()) + kName, std::min(size, there));
    if (all.find('\0') != all.npos) return {};
    if (size + 2 > there) return std::string(all) + "..."; // which of the two it is isn't there
    if (object[kName + size] != std::byte{0}) return {};
    return (static_cast<uint8_t>(object[kName + size + 1]) & kUtf8) != 0 ? std::string(all) : from_latin1(all);
}

std::string file_of(Bytes object) {
    const std::string_view all(reinterpret_cast<const char *>(object.data()), object.size());
    const size_t zero = all.find('\0');
    return zero != all.npos ? std::string(all.substr(0, zero)) : std::string(all) + (all.empty() ? "" : "...");
}

std::string shown(const std::string &package, const std::string &name, const std::string &file) {
    if (!name.empty()) return package.empty() ? name : package + "::" + name;
    if (file.starts_with("(eval ")) return "(eval)";
    return file.substr(file.rfind('/') + 1);
}

} // namespace rawbpf::inline v0::languages::perl
