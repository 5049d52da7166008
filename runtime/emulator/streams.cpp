// Maps without keys: queues, stacks, ring buffers.
//
// A ring buffer's records have the kernel's layout: eight bytes of header (length, BUSY, DISCARD), then the data, rounded up
// to eight. Nobody reads while a program runs, so the ring never wraps: it is full one byte before its size
// (kernel/bpf/queue_stack_maps.c, ringbuf.c).
#include <algorithm>
#include <cerrno>

#include "runtime/emulator/maps.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {
constexpr uint32_t kBusy = 1U << 31, kDiscarded = 1U << 30, kRecordHeader = 8;
uint64_t padded(uint64_t n) { return (n + 7) / 8 * 8; }
} // namespace

// ---- queue and stack: `hand` is the place of the oldest, `count` how many there are

int64_t EmulatedMap::push(const uint8_t *value, uint64_t flags) {
    if (flags > BPF_EXIST || flags == BPF_NOEXIST) return -EINVAL;
    journal_->note(head_, sizeof *head_);
    if (head_->count == max_entries_) {
        if (flags != BPF_EXIST) return -E2BIG;
        head_->hand = (head_->hand + 1) % max_entries_; // makes room by forgetting the oldest
        --head_->count;
    }
    const uint32_t place = static_cast<uint32_t>((uint64_t{head_->hand} + head_->count) % max_entries_);
    journal_->note(value_at(place), value_size_);
    std::memcpy(value_at(place), value, value_size_);
    ++head_->count;
    return 0;
}

int64_t EmulatedMap::pop(uint8_t *value, bool remove) {
    journal_->note(value, value_size_);
    if (head_->count == 0) {
        std::memset(value, 0, value_size_);
        return -ENOENT;
    }
    const uint64_t newest = uint64_t{head_->hand} + head_->count - 1;
    const uint32_t place = kind_ == MapEngine::queue ? head_->hand : static_cast<uint32_t>(newest % max_entries_);
    std::memcpy(value, value_at(place), value_size_);
    if (!remove) return 0;
    journal_->note(head_, sizeof *head_);
    if (kind_ == MapEngine::queue) head_->hand = (head_->hand + 1) % max_entries_;
    --head_->count;
    return 0;
}

// ---- ring buffer

/// Which of the open records is the last that begins at or before an offset; head_->open: none does.
uint32_t EmulatedMap::open_record(uint64_t offset) const {
    const Open *after =
        std::upper_bound(open_, open_ + head_->open, offset, [](uint64_t at, const Open &record) { return at < record.begin; });
    return after == open_ ? head_->open : static_cast<uint32_t>(after - open_ - 1);
}

bool EmulatedMap::record_part(const void *context, uint64_t offset, uint64_t &begin, uint64_t &end) {
    const auto &map = *static_cast<const EmulatedMap *>(context);
    const uint32_t n = map.open_record(offset);
    if (n == map.head_->open || offset >= map.open_[n].end) return false;
    begin = map.open_[n].begin;
    end = map.open_[n].end;
    return true;
}

uint64_t EmulatedMap::reserve(uint64_t size) {
    const uint64_t need = padded(kRecordHeader + size);
    if (size >= kDiscarded || head_->produced + need >= max_entries_ || head_->open == kMostOpenRecords) return 0;
    journal_->note(head_, sizeof *head_);
    uint8_t *record = values_ + head_->produced;
    const uint32_t header[2] = {static_cast<uint32_t>(size) | kBusy, 0};
    journal_->note(record, sizeof header);
    std::memcpy(record, header, sizeof header);
    const uint64_t begin = head_->produced + kRecordHeader;
    set(open_[head_->open], Open{begin, begin + size});
    ++head_->open;
    head_->produced += need;
    return address_ + begin;
}

bool EmulatedMap::release(uint64_t address, bool discard) {
    const uint64_t offset = address - address_;
    if (address < address_ + kRecordHeader) return false;
    const uint32_t n = open_record(offset);
    if (n == head_->open || open_[n].begin != offset) return false;
    uint8_t *header = values_ + offset - kRecordHeader;
    journal_->note(header, sizeof(uint32_t));
    const auto length = static_cast<uint32_t>(open_[n].end - offset) | (discard ? kDiscarded : 0);
    std::memcpy(header, &length, sizeof length);
    journal_->note(head_, sizeof *head_);
    journal_->note(open_ + n, (head_->open - n) * sizeof(Open));
    std::copy(open_ + n + 1, open_ + head_->open, open_ + n);
    --head_->open;
    return true;
}

int64_t EmulatedMap::output(const uint8_t *data, uint64_t size) {
    const uint64_t address = reserve(size);
    if (!address) return -EAGAIN;
    uint8_t *into = values_ + (address - address_);
    journal_->note(into, size);
    std::memcpy(into, data, size);
    (void)release(address, false); // it was reserved just now
    return 0;
}

uint64_t EmulatedMap::query(uint64_t what) const {
    switch (what) {
    case BPF_RB_AVAIL_DATA:
    case BPF_RB_PROD_POS: return head_->produced;
    case BPF_RB_RING_SIZE: return max_entries_;
    default: return 0;
    }
}

void EmulatedMap::each_record(const std::function<void(std::string_view)> &take) const {
    if (kind_ == MapEngine::queue || kind_ == MapEngine::stack)
        for (uint32_t n = 0; n < head_->count; ++n) {
            const uint64_t place = (uint64_t{head_->hand} + n) % max_entries_;
            take({reinterpret_cast<const char *>(values_ + place * stride_), value_size_});
        }
    if (kind_ != MapEngine::ring) return;
    for (uint64_t at = 0; at < head_->produced;) {
        uint32_t length;
        std::memcpy(&length, values_ + at, sizeof length);
        const size_t bytes = length & ~(kBusy | kDiscarded);
        if (!(length & (kBusy | kDiscarded))) take({reinterpret_cast<const char *>(values_ + at + kRecordHeader), bytes});
        at += padded(kRecordHeader + bytes);
    }
}

} // namespace rawbpf::inline v0::emulator
