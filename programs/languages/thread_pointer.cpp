#include "programs/languages/thread_pointer.h"

#include <algorithm>
#include <vector>

#include "runtime/symbols/text.h"

namespace rawbpf::inline v0::languages {
namespace {

constexpr uint64_t kMostOfOne = 256 << 10; // bytes of a region that are searched

struct Region {
    uint64_t start, end;
    [[nodiscard]] uint64_t bytes() const { return end - start; }
};

/// Of a line of /proc/PID/maps that is readable and writable memory without a file.
std::optional<Region> anonymous_region(std::string_view line) {
    symbols::TextCursor at(line);
    Region out{};
    std::string_view rights, rest;
    uint64_t offset = 0;
    if (!at.hex(out.start) || !at.skip('-') || !at.hex(out.end) || !at.skip(' ') || !at.take(4, rights) || !at.skip(' ') ||
        !at.hex(offset) || !at.skip(' '))
        return std::nullopt;
    rest = at.rest(); // device, inode, spaces, name
    const size_t last = rest.find_last_not_of(' ');
    const bool named = last != std::string_view::npos && rest.find('/') != std::string_view::npos;
    if (!rights.starts_with("rw-p") || named || rest.ends_with(']')) return std::nullopt;
    return out.end > out.start ? std::optional(out) : std::nullopt;
}

/// Where to search, the smallest first. The dynamic linker maps the block before the program maps anything, and from above to
/// below: what is mapped later may lie right below it, and then both are one region, at whose end the block is (kernel
/// mm/vma.c, vma_merge_new_range). Whether it does is up to ASLR: of ten starts of one Python, in one.
std::vector<Region> regions_of(std::string_view maps) {
    std::vector<Region> out;
    while (!maps.empty())
        if (const auto region = anonymous_region(symbols::take_line(maps))) out.push_back(*region);
    std::stable_sort(out.begin(), out.end(), [](const Region &a, const Region &b) { return a.bytes() < b.bytes(); });
    for (Region &region : out) region.start = region.end - std::min(region.bytes(), kMostOfOne);
    return out;
}

/// x86-64: the first word and the third are the block's own address.
bool names_itself(Memory &memory, uint64_t at) { return memory.word(at) == at && memory.word(at + 16) == at; }

/// arm64: the first word leads to glibc's table of the thread's blocks (dtv), the second is nobody's. In front of the table is
/// how many entries it has, its first word counts how often it was changed, and its entry 1 is the block right behind these two
/// words.
bool has_table(Memory &memory, uint64_t at) {
    constexpr uint64_t kMostEntries = 1 << 16, kMostChanges = 1 << 24, kFarthest = 1 << 20;
    const uint64_t table = memory.word(at).value_or(0);
    if (table < Pages::kPage || table % 8 != 0 || memory.word(at + 8) != 0) return false;
    const auto entries = memory.word(table - 16), changes = memory.word(table), block = memory.word(table + 16);
    return entries && changes && block && *entries > 0 && *entries <= kMostEntries && *changes <= kMostChanges &&
           *block >= at + 16 && *block - at < kFarthest;
}

} // namespace

std::optional<uint64_t> find_thread_pointer(Memory &memory, std::string_view maps, Arch arch) {
    if (arch != Arch::x86_64 && arch != Arch::arm64) return std::nullopt;
    const auto is = arch == Arch::x86_64 ? names_itself : has_table;
    for (const Region &region : regions_of(maps))
        for (uint64_t at = region.start; at + 24 <= region.end; at += 16) {
            if (memory.exhausted()) return std::nullopt;
            if (is(memory, at)) return at;
        }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::languages
