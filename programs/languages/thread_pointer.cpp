#include "programs/languages/thread_pointer.h"

#include "runtime/symbols/text.h"

namespace rawbpf::inline v0::languages {
namespace {

constexpr uint64_t kLargest = 256 << 10; // of a region that is searched

struct Region {
    uint64_t start, end;
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
    return out.end > out.start && out.end - out.start <= kLargest ? std::optional(out) : std::nullopt;
}

} // namespace

std::optional<uint64_t> find_thread_pointer(Memory &memory, std::string_view maps, Arch arch) {
    if (arch != Arch::x86_64) return std::nullopt;
    while (!maps.empty()) {
        const auto region = anonymous_region(symbols::take_line(maps));
        if (!region) continue;
        for (uint64_t at = region->start; at + 24 <= region->end; at += 16) {
            if (memory.exhausted()) return std::nullopt;
            if (memory.word(at) == at && memory.word(at + 16) == at) return at;
        }
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::languages
