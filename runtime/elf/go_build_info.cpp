// .go.buildinfo, as `go version FILE` reads it:
//
//      ff " Go buildinf:" | word size | flags |  ... up to 32  | length (varint) | "go1.19.8" | length | modules
//      14 bytes             1           1: bit 0 big endian, bit 1 as above (Go 1.18)
//
// Older programs have, from byte 16 on, the addresses of two variables of type string: address and length. In
// position-independent programs these are relocated at run time; the value in the file is mostly correct.
#include "runtime/elf/go_build_info.h"

#include <string_view>

namespace rawbpf::inline v0::elf {
namespace {

constexpr std::string_view kMagic = "\xff Go buildinf:";
constexpr size_t kHeader = 32, kLongest = 256;

std::string_view text_of(Bytes bytes, uint64_t at, uint64_t size) {
    if (size == 0 || size > kLongest || at > bytes.size() || bytes.size() - at < size) return {};
    return {reinterpret_cast<const char *>(bytes.data()) + at, static_cast<size_t>(size)};
}

} // namespace

std::optional<std::string> go_version(const Elf &elf, Bytes image) {
    const Section *section = elf.find_section(".go.buildinfo");
    if (!section || elf.big_endian() || !elf.is_64()) return std::nullopt;
    const Bytes bytes = elf.contents(*section);
    if (bytes.size() < kHeader || text_of(bytes, 0, kMagic.size()) != kMagic) return std::nullopt;
    std::string_view found;
    if (static_cast<uint8_t>(bytes[15]) & 2) {
        uint64_t size = 0;
        size_t at = kHeader;
        for (int shift = 0; shift < 28 && at < bytes.size(); shift += 7) {
            const auto byte = static_cast<uint8_t>(bytes[at++]);
            size |= uint64_t{byte & 0x7fu} << shift;
            if (!(byte & 0x80)) break;
        }
        found = text_of(bytes, at, size);
    } else if (const auto header = elf.file_offset(load<uint64_t>(bytes.data() + 16));
               header && *header <= image.size() && image.size() - *header >= 16) {
        const std::byte *variable = image.data() + *header;
        if (const auto at = elf.file_offset(load<uint64_t>(variable))) found = text_of(image, *at, load<uint64_t>(variable + 8));
    }
    if (found.find("go") == std::string_view::npos && found.find("devel") == std::string_view::npos) return std::nullopt;
    return std::string(found);
}

} // namespace rawbpf::inline v0::elf
