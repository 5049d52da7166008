#include "programs/languages/ruby/lines.h"

#include <algorithm>
#include <bit>

#include "programs/languages/layout.h"

namespace rawbpf::inline v0::languages::ruby {

std::string string_of(Bytes object, uint32_t text) {
    constexpr size_t kLength = 16;
    if (object.size() < 24) return {};
    const auto flags = load<uint32_t>(object.data());
    uint64_t length = load<uint64_t>(object.data() + kLength);
    size_t at = text;
    if ((flags & kFar) != 0)
        at = LANGUAGE_TEXT_HEAD;
    else if (text == kEmbeddedShort)
        length = flags >> 14 & 0x1f;
    if (at >= object.size()) return {};
    const uint64_t available = object.size() - at;
    std::string out(reinterpret_cast<const char *>(object.data()) + at, std::min(length, available));
    if (length > available) out += "...";
    return out;
}

std::optional<uint32_t> entry_at(Bytes index, uint64_t position) {
    constexpr uint64_t kCounts = 54, kWord = 9, kHead = 48, kBlock = 80, kPositions = 512;
    const auto word = [&](uint64_t at) { return load<uint64_t>(index.data() + at); };
    if (position < kCounts) {
        const uint64_t at = position / kWord * 8;
        if (at + 8 > index.size()) return std::nullopt;
        return static_cast<uint32_t>(word(at) >> (position % kWord * 7) & 0x7f);
    }
    position -= kCounts;
    if (position / kPositions > index.size()) return std::nullopt;
    const uint64_t block = kHead + position / kPositions * kBlock;
    if (block + kBlock > index.size()) return std::nullopt;
    const uint64_t bit = position % kPositions, part = bit / 64;
    uint32_t count = load<uint32_t>(index.data() + block);
    if (part > 0) count += static_cast<uint32_t>(word(block + 8) >> ((part - 1) * 9) & 0x1ff);
    return count + static_cast<uint32_t>(std::popcount(word(block + 16 + part * 8) << (63 - bit % 64)));
}

uint32_t line_at(Bytes entries, uint32_t entry, Bytes index, uint64_t position) {
    const auto number = entry_at(index, position);
    if (!number || *number == 0 || entry < 4) return 0;
    const uint64_t at = uint64_t{*number - 1} * entry;
    if (at + 4 > entries.size()) return 0;
    const auto line = load<int32_t>(entries.data() + at);
    return line > 0 ? static_cast<uint32_t>(line) : 0;
}

} // namespace rawbpf::inline v0::languages::ruby
