// The common map types in user space.
//
//      one block:   [ Head | hash: first[buckets], next[n], used[n] | keys[n] | values[n] ]
//
// Places (0 .. max_entries-1) hold the entries; a hash map's buckets chain their numbers. Nothing moves, so a value's address
// stays good for as long as the map lives, deleted or not, as in the kernel's preallocated maps. Every change is noted in the
// journal first; that is all that stepping backwards needs.
//
// Return values are the kernel's: E2BIG for a full hash and for an index behind an array's end, EEXIST and ENOENT as the flags
// say, EINVAL for deleting from an array (kernel/bpf/hashtab.c, arraymap.c, queue_stack_maps.c, ringbuf.c). An LRU map drops
// the entry that a clock hand finds unused since it last came by, which is the kernel's idea, not its choice.
//
// A ring buffer's records are laid out as the kernel's: eight bytes of header (length, BUSY, DISCARD), then the data, rounded up
// to eight. Nobody reads while a program runs, so the ring never comes around: it is full one byte before its size.
#include "runtime/emulator/maps.h"

#include <cerrno>
#include <cstdlib>

#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {

constexpr uint32_t kBusy = 1U << 31, kDiscarded = 1U << 30, kRecordHeader = 8;

MapKind kind_of(uint32_t type) {
    switch (type) {
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY: return MapKind::array;
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH:
    case BPF_MAP_TYPE_LRU_HASH:
    case BPF_MAP_TYPE_LRU_PERCPU_HASH: return MapKind::hash;
    case BPF_MAP_TYPE_PROG_ARRAY: return MapKind::programs;
    case BPF_MAP_TYPE_QUEUE: return MapKind::queue;
    case BPF_MAP_TYPE_STACK: return MapKind::stack;
    case BPF_MAP_TYPE_RINGBUF: return MapKind::ring;
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY: return MapKind::records;
    default: return MapKind::unknown;
    }
}

uint64_t padded(uint64_t n) { return (n + 7) / 8 * 8; }

} // namespace

Result<std::unique_ptr<EmulatedMap>> EmulatedMap::create(const MapSpec &spec, Memory &memory, Journal &journal) {
    std::unique_ptr<EmulatedMap> map(new EmulatedMap); // NOLINT: the constructor is private
    map->journal_ = &journal;
    map->kind_ = kind_of(spec.type);
    map->name_ = spec.name;
    map->type_ = spec.type;
    map->key_size_ = spec.key_size;
    map->value_size_ = spec.value_size;
    map->max_entries_ = spec.max_entries;
    map->lru_ = spec.type == BPF_MAP_TYPE_LRU_HASH || spec.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
    const MapKind kind = map->kind_;
    const uint64_t n = kind == MapKind::unknown || kind == MapKind::records ? 0 : spec.max_entries;
    if (n == 0 && kind != MapKind::unknown && kind != MapKind::records)
        return fail(Errc::invalid_argument, "map {}: max_entries is 0", spec.name);
    if ((kind == MapKind::array || kind == MapKind::programs) && spec.key_size != 4)
        return fail(Errc::invalid_argument, "map {}: an array's key has 4 bytes, not {}", spec.name, spec.key_size);
    if (kind == MapKind::ring && (n & (n - 1) || n < 4096))
        return fail(Errc::invalid_argument, "map {}: a ring buffer's size is a power of two and at least a page, not {}",
                    spec.name, n);
    if (kind == MapKind::programs) map->value_size_ = 4;
    const bool hash = kind == MapKind::hash, ring = kind == MapKind::ring;
    if (hash && spec.key_size == 0) return fail(Errc::invalid_argument, "map {}: a hash's key has no bytes", spec.name);
    map->stride_ = static_cast<uint32_t>(ring ? 1 : padded(map->value_size_));
    if (hash)
        for (map->buckets_ = 1; map->buckets_ < n; map->buckets_ *= 2) {
        }

    const uint64_t index = hash ? padded((map->buckets_ + n) * sizeof(uint32_t)) + padded(n) : 0;
    const uint64_t key_stride = padded(spec.key_size), keys = hash ? key_stride * n : 8;
    const uint64_t values = n * map->stride_;
    const uint64_t all = sizeof(Head) + index + keys + values;
    if (values >= uint64_t{kSlots} << kSlotBits)
        return fail(Errc::no_memory, "map {}: {} bytes of values; the emulator has 4 GiB for all maps", spec.name, values);
    map->block_.reset(static_cast<uint8_t *>(std::calloc(1, all)));
    if (!map->block_) return fail(Errc::no_memory, "map {}: {} bytes can't be had", spec.name, all);
    uint8_t *at = map->block_.get();
    map->head_ = reinterpret_cast<Head *>(at);
    at += sizeof(Head);
    if (hash) {
        map->first_ = reinterpret_cast<uint32_t *>(at);
        map->next_ = map->first_ + map->buckets_;
        map->used_ = at + padded((map->buckets_ + n) * sizeof(uint32_t));
    }
    map->keys_ = map->block_.get() + sizeof(Head) + index;
    map->values_ = map->keys_ + keys;

    if (!spec.contents.empty() && kind == MapKind::array)
        std::memcpy(map->values_, spec.contents.data(), std::min<uint64_t>(spec.contents.size(), values));

    const bool readable = kind == MapKind::array || hash || ring; // queues' values are only ever copied
    if (readable && values) {
        Object object;
        object.name = spec.data_section.empty() ? format("map {}", spec.name) : spec.data_section;
        object.size = values;
        object.bytes = map->values_;
        object.writable = !(spec.flags & BPF_F_RDONLY_PROG);
        if (!ring && n > 1) object.stride = map->stride_, object.element = map->value_size_;
        if (!ring && n == 1) object.size = map->value_size_;
        if (ring) object.part = record_part, object.context = map.get();
        map->address_ = TRY(memory.add(std::move(object)));
    }
    Object key;
    key.name = format("a key of map {}", spec.name);
    key.size = keys;
    key.bytes = map->keys_;
    key.writable = false;
    if (hash) key.stride = static_cast<uint32_t>(key_stride), key.element = spec.key_size;
    if (kind == MapKind::array || hash) map->keys_address_ = TRY(memory.add(std::move(key)));
    return map;
}

// ---- hash and array

uint32_t EmulatedMap::bucket_of(const uint8_t *key) const {
    uint64_t h = 0xcbf29ce484222325; // FNV-1a
    for (uint32_t i = 0; i < key_size_; ++i) h = (h ^ key[i]) * 0x100000001b3;
    return static_cast<uint32_t>(h ^ h >> 32) & (buckets_ - 1);
}

uint32_t EmulatedMap::find(const uint8_t *key, uint32_t bucket) const {
    for (uint32_t at = first_[bucket]; at; at = next_[at - 1])
        if (std::memcmp(keys_ + (at - 1) * padded(key_size_), key, key_size_) == 0) return at;
    return 0;
}

void EmulatedMap::unlink(uint32_t place, uint32_t bucket) {
    uint32_t *link = &first_[bucket];
    while (*link != place + 1) link = &next_[*link - 1];
    set(*link, next_[place]);
    set(next_[place], head_->free);
    set(used_[place], uint8_t{0});
    journal_->note(head_, sizeof *head_);
    head_->free = place + 1;
    --head_->count;
}

/// Frees the place of an entry that wasn't used lately. The map is full.
uint32_t EmulatedMap::evict() {
    journal_->note(head_, sizeof *head_);
    for (;; head_->hand = (head_->hand + 1) % max_entries_) {
        uint8_t &used = used_[head_->hand];
        if (used == 1) break;
        if (used == 2) set(used, uint8_t{1});
    }
    const uint32_t place = head_->hand;
    unlink(place, bucket_of(keys_ + place * padded(key_size_)));
    return place;
}

uint64_t EmulatedMap::lookup(const uint8_t *key) {
    if (kind_ == MapKind::array) {
        uint32_t index;
        std::memcpy(&index, key, sizeof index);
        return index < max_entries_ ? value_address(index) : 0;
    }
    const uint32_t at = find(key, bucket_of(key));
    if (!at) return 0;
    if (lru_ && used_[at - 1] != 2) set(used_[at - 1], uint8_t{2});
    return value_address(at - 1);
}

int64_t EmulatedMap::update(const uint8_t *key, const uint8_t *value, uint64_t flags) {
    if ((flags & ~uint64_t{BPF_F_LOCK}) > BPF_EXIST) return -EINVAL;
    const uint64_t how = flags & 3;
    if (kind_ == MapKind::array) {
        uint32_t index;
        std::memcpy(&index, key, sizeof index);
        if (index >= max_entries_) return -E2BIG;
        if (how == BPF_NOEXIST) return -EEXIST;
        journal_->note(value_at(index), value_size_);
        std::memmove(value_at(index), value, value_size_);
        return 0;
    }
    const uint32_t bucket = bucket_of(key);
    uint32_t at = find(key, bucket);
    if (at && how == BPF_NOEXIST) return -EEXIST;
    if (!at && how == BPF_EXIST) return -ENOENT;
    if (!at) {
        if (head_->count == max_entries_) {
            if (!lru_) return -E2BIG;
            evict();
        }
        journal_->note(head_, sizeof *head_);
        if (head_->free) {
            at = head_->free;
            head_->free = next_[at - 1];
        } else {
            at = ++head_->fresh;
        }
        ++head_->count;
        uint8_t *own = keys_ + (at - 1) * padded(key_size_);
        journal_->note(own, key_size_);
        std::memcpy(own, key, key_size_);
        set(next_[at - 1], first_[bucket]);
        set(first_[bucket], at);
        set(used_[at - 1], uint8_t{1});
    } else if (lru_ && used_[at - 1] != 2) {
        set(used_[at - 1], uint8_t{2});
    }
    journal_->note(value_at(at - 1), value_size_);
    std::memmove(value_at(at - 1), value, value_size_);
    return 0;
}

int64_t EmulatedMap::erase(const uint8_t *key) {
    if (kind_ == MapKind::array) return -EINVAL;
    const uint32_t bucket = bucket_of(key), at = find(key, bucket);
    if (!at) return -ENOENT;
    unlink(at - 1, bucket);
    return 0;
}

uint32_t EmulatedMap::next_entry(uint32_t place) const {
    if (kind_ == MapKind::array) return place < max_entries_ ? place : max_entries_;
    if (kind_ != MapKind::hash) return max_entries_;
    for (; place < head_->fresh; ++place)
        if (used_[place]) return place;
    return max_entries_;
}

const uint8_t *EmulatedMap::key_at(uint32_t place, uint32_t &array_key) const {
    array_key = place;
    return kind_ == MapKind::hash ? keys_ + place * padded(key_size_) : reinterpret_cast<const uint8_t *>(&array_key);
}

uint64_t EmulatedMap::key_address(uint32_t place) {
    if (kind_ == MapKind::hash) return keys_address_ + place * padded(key_size_);
    journal_->note(keys_, sizeof place);
    std::memcpy(keys_, &place, sizeof place);
    return keys_address_;
}

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
    const uint32_t place = kind_ == MapKind::queue ? head_->hand : static_cast<uint32_t>(newest % max_entries_);
    std::memcpy(value, value_at(place), value_size_);
    if (!remove) return 0;
    journal_->note(head_, sizeof *head_);
    if (kind_ == MapKind::queue) head_->hand = (head_->hand + 1) % max_entries_;
    --head_->count;
    return 0;
}

// ---- ring buffer

bool EmulatedMap::record_part(const void *context, uint64_t offset, uint64_t &begin, uint64_t &end) {
    const auto &map = *static_cast<const EmulatedMap *>(context);
    if (map.head_->open == 0) return false;
    for (uint64_t at = map.head_->oldest; at < map.head_->produced;) {
        uint32_t length;
        std::memcpy(&length, map.values_ + at, sizeof length);
        const uint32_t bytes = length & ~(kBusy | kDiscarded);
        begin = at + kRecordHeader;
        end = begin + bytes;
        if (length & kBusy && offset >= begin && offset < end) return true;
        at += padded(kRecordHeader + uint64_t{bytes});
    }
    return false;
}

uint64_t EmulatedMap::reserve(uint64_t size) {
    const uint64_t need = padded(kRecordHeader + size);
    if (size >= kDiscarded || head_->produced + need >= max_entries_) return 0;
    journal_->note(head_, sizeof *head_);
    if (head_->open++ == 0) head_->oldest = head_->produced;
    uint8_t *record = values_ + head_->produced;
    const uint32_t header[2] = {static_cast<uint32_t>(size) | kBusy, 0};
    journal_->note(record, sizeof header);
    std::memcpy(record, header, sizeof header);
    const uint64_t address = address_ + head_->produced + kRecordHeader;
    head_->produced += need;
    return address;
}

bool EmulatedMap::release(uint64_t address, bool discard) {
    const uint64_t offset = address - address_;
    uint64_t begin = 0, end = 0;
    if (address < address_ + kRecordHeader || !record_part(this, offset, begin, end) || begin != offset) return false;
    uint8_t *header = values_ + offset - kRecordHeader;
    journal_->note(header, sizeof(uint32_t));
    const auto length = static_cast<uint32_t>(end - begin) | (discard ? kDiscarded : 0);
    std::memcpy(header, &length, sizeof length);
    journal_->note(head_, sizeof *head_);
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
    if (kind_ == MapKind::queue || kind_ == MapKind::stack)
        for (uint32_t n = 0; n < head_->count; ++n) {
            const uint64_t place = (uint64_t{head_->hand} + n) % max_entries_;
            take({reinterpret_cast<const char *>(values_ + place * stride_), value_size_});
        }
    if (kind_ != MapKind::ring) return;
    for (uint64_t at = 0; at < head_->produced;) {
        uint32_t length;
        std::memcpy(&length, values_ + at, sizeof length);
        const uint64_t bytes = length & ~(kBusy | kDiscarded);
        if (!(length & (kBusy | kDiscarded))) take({reinterpret_cast<const char *>(values_ + at + kRecordHeader), bytes});
        at += padded(kRecordHeader + bytes);
    }
}

} // namespace rawbpf::inline v0::emulator
