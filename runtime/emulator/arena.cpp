// Arenas: memory that a program and user space share, whose pages are allocated on request (kernel/bpf/arena.c, 6.9).
//
//      user space's address   0000 0001 | aa aa aa aa        what bpf_arena_alloc_pages() returns and variables have
//      the program's                      aa aa aa aa        after addr_space_cast(r, 0, 1); 0 stays 0 the other way round
//
// Only the lower 32 bits count, as in the kernel; here they are an address of the emulator. A page that was not allocated
// can't be read: the kernel returns zeros and drops writes, which hides a mistake; here the access is a fault that names the
// page.
#include <algorithm>

#include "runtime/emulator/maps.h"

namespace rawbpf::inline v0::emulator {

namespace {
constexpr uint64_t kReach = 4096; // pages that one access may go over
} // namespace

bool EmulatedMap::pages_part(const void *context, uint64_t offset, uint64_t &begin, uint64_t &end) {
    const auto &map = *static_cast<const EmulatedMap *>(context);
    const uint64_t page = offset / map.page_;
    if (page >= map.max_entries_ || !map.used_[page]) return false;
    const uint64_t far = std::min<uint64_t>(map.max_entries_ - page, kReach);
    const void *gap = std::memchr(map.used_ + page, 0, far);
    begin = page * map.page_;
    end = begin + (gap ? static_cast<uint64_t>(static_cast<const uint8_t *>(gap) - map.used_) - page : far) * map.page_;
    return true;
}

uint64_t EmulatedMap::allocate(uint64_t wanted, uint32_t pages) {
    if (pages == 0 || pages > max_entries_) return 0;
    auto taken = [&](uint64_t first) { // the first page that isn't free, or the end
        uint64_t n = first;
        while (n < first + pages && !used_[n]) ++n;
        *work_ += 1 + (n - first) / kBytesPerWork;
        return n;
    };
    uint64_t first = 0;
    if (wanted) {
        const uint64_t offset = static_cast<uint32_t>(wanted) - address_;
        if (static_cast<uint32_t>(wanted) < address_ || offset % page_ || offset / page_ > max_entries_ - pages) return 0;
        first = offset / page_;
        if (taken(first) != first + pages) return 0;
    } else {
        for (uint64_t stop; first <= max_entries_ - pages && (stop = taken(first)) != first + pages;) first = stop + 1;
        if (first > max_entries_ - pages) return 0;
    }
    journal_->note(used_ + first, pages);
    std::memset(used_ + first, 1, pages);
    const uint64_t bytes = uint64_t{pages} * page_;
    *work_ += bytes / kBytesPerWork;
    journal_->note(values_ + first * page_, bytes);
    std::memset(values_ + first * page_, 0, bytes);
    return address() + first * page_;
}

void EmulatedMap::release_pages(uint64_t address, uint32_t pages) {
    const uint64_t offset = static_cast<uint32_t>(address) - address_;
    if (static_cast<uint32_t>(address) < address_ || offset / page_ >= max_entries_) return;
    const uint64_t first = offset / page_, count = std::min<uint64_t>(pages, max_entries_ - first);
    journal_->note(used_ + first, count);
    std::memset(used_ + first, 0, count);
}

} // namespace rawbpf::inline v0::emulator
