#include "programs/languages/v8/exits.h"

#include <algorithm>
#include <bit>

#include "programs/languages/v8/heap.h"

namespace rawbpf::inline v0::languages::v8 {
namespace {

constexpr size_t kExitWords = 3;
constexpr size_t kFewestBefore = 3, kMostBefore = 20; // words before the first exit; 11 or 12 are known

/// How many bytes a table's column takes whose largest number this is.
size_t width(uint32_t largest) { return (static_cast<size_t>(std::bit_width(largest)) + 7) / 8; }

uint32_t number(Bytes bytes) {
    uint32_t out = 0;
    for (size_t i = 0; i < bytes.size(); ++i) out |= static_cast<uint32_t>(bytes[i]) << 8 * i;
    return out;
}

} // namespace

// Before the first exit stand the beginning of the exits' code, how many go back at once, and how many when a call returns.
std::optional<std::vector<Exit>> read_exits(std::span<const uint64_t> words) {
    for (size_t before = kFewestBefore; before <= kMostBefore && before < words.size(); ++before) {
        if ((words.size() - before) % kExitWords != 0) continue;
        const auto exits = words.subspan(before);
        if (!std::all_of(words.begin() + static_cast<ptrdiff_t>(before - 3), words.end(), is_smi)) continue;
        const int64_t at_once = smi(words[before - 2]), calls = smi(words[before - 1]);
        if (at_once < 0 || calls < 0 || static_cast<size_t>(at_once + calls) != exits.size() / kExitWords) continue;
        std::vector<Exit> out;
        int32_t code = smi(words[before - 3]) - 1;
        for (size_t i = 0; i < exits.size(); i += kExitWords) {
            out.push_back({smi(exits[i]), smi(exits[i + 1]), smi(exits[i + 2])});
            if (out.back().code <= code || out.back().translation < 0) return std::nullopt;
            code = out.back().code;
        }
        return out.front().code == smi(words[before - 3]) ? std::optional(std::move(out)) : std::nullopt;
    }
    return std::nullopt;
}

const Exit *exit_of_call(Bytes behind, std::span<const Exit> exits, uint32_t returns_to) {
    if (exits.empty()) return nullptr;
    const size_t codes = width(static_cast<uint32_t>(exits.back().code) + 1),
                 numbers = width(static_cast<uint32_t>(exits.size()));
    const size_t entry = codes + numbers + codes;
    for (; behind.size() >= entry; behind = behind.subspan(1)) {
        if (number(behind.first(codes)) != returns_to) continue;
        const uint32_t exit = number(behind.subspan(codes, numbers)) - 1;
        if (exit >= exits.size()) continue;
        const auto code = static_cast<uint32_t>(exits[exit].code);
        if (number(behind.subspan(codes + numbers, codes)) == code + 1) return &exits[exit];
    }
    return nullptr;
}

// A translation begins with what it is and two or three numbers: since V8 11 how far back one with the same beginning is, frames,
// and those of JavaScript; before that frames, those of JavaScript, and what else there is. The second is looked at.
bool has_one_frame(Bytes translations, int32_t at) {
    constexpr std::byte kOne{2}, kMore{0x80};
    if (at < 0 || static_cast<size_t>(at) >= translations.size()) return false;
    Bytes left = translations.subspan(static_cast<size_t>(at) + 1);
    while (!left.empty() && (left[0] & kMore) != std::byte{0}) left = left.subspan(1);
    return left.size() > 1 && left[1] == kOne;
}

} // namespace rawbpf::inline v0::languages::v8
