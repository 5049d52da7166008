#include "programs/languages/memory.h"

#include <algorithm>
#include <cstring>

#include <fcntl.h>

#include "runtime/base/fail.h"
#include "runtime/base/format.h"
#include "runtime/symbols/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/invoke.h"
#include "runtime/sys/process_memory.h"

namespace rawbpf::inline v0::languages {

Result<ProcessPages> ProcessPages::open(uint32_t pid) {
    sys::Because why("a process's memory: may we read it?");
    (void)TRY(sys::open(format("/proc/{}/mem", pid), O_RDONLY)); // whether we may
    return ProcessPages(pid);
}

Result<ProcessPages> ProcessPages::open_mapped(uint32_t pid) {
    ProcessPages out = TRY(open(pid));
    out.maps_ = TRY(sys::read_file(format("/proc/{}/maps", pid)));
    std::vector<Range> &mapped = out.mapped_.emplace();
    for (std::string_view text = out.maps_; !text.empty();) {
        symbols::TextCursor at(symbols::take_line(text));
        Range range{};
        if (!at.hex(range.start) || !at.skip('-') || !at.hex(range.end)) continue;
        if (!mapped.empty() && range.start <= mapped.back().end)
            mapped.back().end = std::max(mapped.back().end, range.end);
        else
            mapped.push_back(range);
    }
    return out;
}

bool ProcessPages::read(uint64_t address, std::span<std::byte> page) {
    if (mapped_) {
        const auto after = std::upper_bound(mapped_->begin(), mapped_->end(), address,
                                            [](uint64_t wanted, const Range &range) { return wanted < range.start; });
        if (after == mapped_->begin() || address >= (after - 1)->end) return false;
    }
    return sys::read_memory(pid_, address, page).value_or(0) == page.size();
}

const std::byte *Memory::page(uint64_t address) {
    if (last_ && address == last_address_) return last_;
    const auto [at, fresh] = kept_.try_emplace(address);
    if (fresh) {
        if (left_ == 0) {
            kept_.erase(at);
            return nullptr;
        }
        --left_;
        std::vector<std::byte> bytes(Pages::kPage);
        if (pages_.read(address, bytes)) at->second = std::move(bytes);
    }
    if (at->second.empty()) return nullptr;
    last_address_ = address;
    return last_ = at->second.data();
}

bool Memory::read(uint64_t address, std::span<std::byte> into) {
    while (!into.empty()) {
        const uint64_t within = address % Pages::kPage;
        const size_t n = std::min<size_t>(into.size(), Pages::kPage - within);
        const std::byte *from = page(address - within);
        if (!from) return false;
        std::memcpy(into.data(), from + within, n);
        into = into.subspan(n);
        if (__builtin_add_overflow(address, n, &address)) return into.empty();
    }
    return true;
}

std::optional<uint64_t> Memory::word(uint64_t address) {
    uint64_t value = 0;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
}

std::optional<uint32_t> Memory::word32(uint64_t address) {
    uint32_t value = 0;
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
}

std::optional<std::string> Memory::text(uint64_t address, size_t most) {
    std::string out;
    for (size_t i = 0; i < most; ++i) {
        std::byte one{};
        if (!read(address + i, std::span(&one, 1))) return std::nullopt;
        if (one == std::byte{0}) return out;
        out.push_back(static_cast<char>(one));
    }
    return std::nullopt;
}

} // namespace rawbpf::inline v0::languages
