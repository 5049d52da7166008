// The common map types in user space: creation, and maps with keys.
//
//      one block:   [ Head | hash: first[buckets], next[n], slots[n], used[n] | keys[n] | values[n + 1] ]
//
// Places (0 .. max_entries-1) hold the entries; a hash map's buckets chain their numbers. Nothing moves, so a value's address
// stays good for as long as the map lives, deleted or not, as in the kernel's preallocated maps. There a new value doesn't
// overwrite the old one: it goes to an element that was kept aside, which the old one then becomes, and a pointer from before
// still sees what it saw. So slots[place] says where a place's value is, and there is one more than there are places. Per-CPU
// maps overwrite. What is freed last is used first, as there. Places that nobody has used take no memory: their numbers begin as
// zeros.
//
// The addresses of two values have a gap of up to a page between them, so that an access beyond one value doesn't hit the
// next. Every change is written to the journal first; stepping backwards needs nothing else.
//
// Return values are the kernel's: E2BIG for a full hash and for an index behind an array's end, ENOSPC for a full trie, EEXIST
// and ENOENT as the flags say, EINVAL for deleting from an array (kernel/bpf/hashtab.c, arraymap.c, lpm_trie.c). An LRU map
// drops the entry that a clock hand finds unused since it last came by, which is the kernel's idea, not its choice.
//
// A trie is a hash of the prefixes of its keys; a lookup tries each length, from the longest on.
#include "runtime/emulator/maps.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "asm/map_types.h"
#include "asm/print.h"
#include "runtime/base/fail.h"
#include "runtime/sys/file.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::emulator {

namespace {

constexpr uint32_t kTrieHeader = 4; // struct bpf_lpm_trie_key: the number of bits, then the data, most significant bit first
constexpr uint32_t kMostTrieBytes = 256;
constexpr uint32_t kTarget = 16; // struct bpf_insn_array_value (6.19); a program sees eight bytes of it, the address

uint64_t padded(uint64_t n) { return (n + 7) / 8 * 8; }

uint32_t prefix_bits(const uint8_t *key) {
    uint32_t bits;
    std::memcpy(&bits, key, sizeof bits);
    return bits;
}

} // namespace

/// What no kernel takes.
Result<void> EmulatedMap::check(const MapSpec &spec) {
    auto refuse = [&](std::string_view why) { return fail(Errc::invalid_argument, "map {}: {}", spec.name, why); };
    const uint64_t n = spec.max_entries;
    const bool valued = kind_ == MapEngine::array || kind_ == MapEngine::hash || kind_ == MapEngine::trie ||
                        kind_ == MapEngine::queue || kind_ == MapEngine::stack;
    if (valued && spec.value_size == 0) return refuse("value_size is 0, and the kernel needs at least 1");
    if ((kind_ == MapEngine::queue || kind_ == MapEngine::stack || kind_ == MapEngine::ring) && spec.key_size != 0)
        return refuse(format("key_size is {}, and must be 0: a {} has no keys", spec.key_size, map_kind_name(type_)));
    if (kind_ == MapEngine::ring && spec.value_size != 0)
        return refuse(format("value_size is {}, and must be 0: a ring buffer has no values", spec.value_size));
    if (kind_ == MapEngine::hash && lru_ && !preallocated_) return refuse("an LRU hash can't have the flag BPF_F_NO_PREALLOC, 1");
    if (n == 0 && kind_ != MapEngine::unknown && kind_ != MapEngine::records) return refuse("max_entries is 0");
    switch (kind_) {
    case MapEngine::array:
    case MapEngine::programs:
    case MapEngine::maps:
    case MapEngine::targets:
        if (spec.key_size != 4)
            return refuse(format("key_size is {}, and keys of maps of this type have 4 bytes", spec.key_size));
        break;
    case MapEngine::hash:
    case MapEngine::map_set:
        if (spec.key_size == 0) return refuse("key_size is 0, and keys of a hash need at least 1 byte");
        break;
    case MapEngine::trie:
        if (spec.key_size <= kTrieHeader || spec.key_size > kTrieHeader + kMostTrieBytes)
            return refuse(format("key_size is {}, and a key of an LPM trie has 4 bytes for its length and 1 to 256 bytes of data",
                                 spec.key_size));
        if (!(spec.flags & BPF_F_NO_PREALLOC)) return refuse("LPM tries need the flag BPF_F_NO_PREALLOC, 1");
        break;
    case MapEngine::bloom:
        if (spec.key_size != 0 || spec.value_size == 0)
            return refuse("key_size must be 0 and value_size at least 1: a bloom filter has values, and no keys");
        if (spec.map_extra > 15)
            return refuse(format("map_extra is {}, and a bloom filter has 1 to 15 hash functions", spec.map_extra));
        break;
    case MapEngine::ring:
        if (n & (n - 1) || n < 4096)
            return refuse(
                format("max_entries is {}, and the size of a ring buffer must be a power of two and at least a page", n));
        break;
    case MapEngine::arena:
        if (spec.key_size || spec.value_size) return refuse("key_size and value_size must be 0: an arena has no keys and values");
        if (spec.contents.size() > n * page_)
            return refuse(format("its variables have {} bytes, which don't fit in its {} pages", spec.contents.size(), n));
        break;
    default: break;
    }
    return {};
}

Result<std::unique_ptr<EmulatedMap>> EmulatedMap::create(const MapSpec &spec, Memory &memory, Journal &journal,
                                                         std::optional<uint32_t> lock) {
    std::unique_ptr<EmulatedMap> map(new EmulatedMap); // NOLINT: the constructor is private
    map->journal_ = &journal;
    map->kind_ = map_type_row(spec.type).engine;
    map->name_ = spec.name;
    map->type_ = spec.type;
    map->key_size_ = spec.key_size;
    map->value_size_ = spec.value_size;
    map->max_entries_ = spec.max_entries;
    if (lock && uint64_t{*lock} + sizeof(bpf_spin_lock) <= spec.value_size) map->lock_ = lock;
    map->lru_ = spec.type == BPF_MAP_TYPE_LRU_HASH || spec.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
    map->per_cpu_ = map_type_row(spec.type).values == MapValues::per_cpu;
    map->preallocated_ = !(spec.flags & BPF_F_NO_PREALLOC);
    map->page_ = static_cast<uint32_t>(sys::page_size());
    const MapEngine kind = map->kind_;
    TRY(map->check(spec));
    const bool hash = map->hashed(), spare = hash && !map->per_cpu_;
    const uint64_t n = kind == MapEngine::unknown || kind == MapEngine::records ? 0 : spec.max_entries;

    if (kind == MapEngine::programs) map->value_size_ = 4;
    if (kind == MapEngine::maps || kind == MapEngine::map_set || kind == MapEngine::targets) map->value_size_ = 8; // an address
    map->stride_ = static_cast<uint32_t>(kind == MapEngine::ring    ? 1
                                         : kind == MapEngine::arena ? map->page_
                                                                    : padded(map->value_size_));
    constexpr uint64_t kAll = uint64_t{kSlots} << kSlotBits;
    if (spec.value_size > UINT32_MAX - 7 || (map->stride_ && n >= kAll / map->stride_) || (hash && n > kAll / 16))
        return fail(Errc::no_memory, "map {}: {} values of {} bytes don't fit; the emulator has 4 GiB of addresses for all maps",
                    spec.name, n, map->value_size_);
    if (hash)
        for (map->buckets_ = 1; map->buckets_ < n; map->buckets_ *= 2) {
        }
    map->key_stride_ = static_cast<uint32_t>(padded(spec.key_size));

    const uint64_t numbers = padded((map->buckets_ + 3 * n + 1) * sizeof(uint32_t)); // of a hash
    uint64_t index = hash                       ? numbers + padded(n)
                     : kind == MapEngine::arena ? padded(n)
                     : kind == MapEngine::ring  ? kMostOpenRecords * sizeof(Open)
                                                : 0;
    const uint64_t keys = hash ? uint64_t{map->key_stride_} * n : 8;
    uint64_t values = (n + spare) * map->stride_;
    const bool pieces = kind == MapEngine::array || (hash && kind != MapEngine::map_set);
    map->spread_ = pieces && n + spare > 1 ? map->spread_of(map->stride_, n + spare) : map->stride_;
    map->key_spread_ = hash ? map->spread_of(map->key_stride_, n) : 0;
    if (kind == MapEngine::bloom) { // seven bits for five hashes, then the next power of two
        map->bloom_functions_ = spec.map_extra ? static_cast<uint32_t>(spec.map_extra) : 5;
        uint64_t bits = n * map->bloom_functions_ / 5 * 7;
        bool beyond = n * map->bloom_functions_ > UINT32_MAX || bits > UINT32_MAX || bits > uint64_t{1} << 31;
        uint64_t power = 64;
        while (power < bits) power *= 2;
        map->bloom_mask_ = beyond ? UINT32_MAX : static_cast<uint32_t>(power - 1);
        values = (uint64_t{map->bloom_mask_} + 1) / 8;
    }
    const uint64_t all = sizeof(Head) + index + keys + values;
    map->bytes_ = all;
    if (all > kMostMapBytes)
        return fail(Errc::no_memory, "map {}: its {} entries need {} MiB; the emulator has {} MiB for all maps", spec.name, n,
                    (all + (1 << 20) - 1) >> 20, kMostMapBytes >> 20);
    map->block_.reset(static_cast<uint8_t *>(std::calloc(1, all)));
    if (!map->block_) return fail(Errc::no_memory, "map {}: rawbpf couldn't allocate {} bytes", spec.name, all);
    uint8_t *at = map->block_.get();
    map->head_ = reinterpret_cast<Head *>(at);
    map->head_->spare = static_cast<uint32_t>(n);
    at += sizeof(Head);
    if (hash) {
        map->first_ = reinterpret_cast<uint32_t *>(at);
        map->next_ = map->first_ + map->buckets_;
        map->slots_ = map->next_ + n;
        map->owners_ = map->slots_ + n;
        at += numbers;
    }
    if (kind == MapEngine::ring) map->open_ = reinterpret_cast<Open *>(at);
    map->used_ = at;
    map->keys_ = map->block_.get() + sizeof(Head) + index;
    map->values_ = map->keys_ + keys;
    map->fill(spec);
    TRY(map->expose(spec, memory, values, keys));
    return map;
}

/// How far apart the addresses of `count` things of `stride` bytes are: by a page more where 16 MiB hold them all, by 8 at least.
uint32_t EmulatedMap::spread_of(uint64_t stride, uint64_t count) const {
    uint64_t gap = 4096;
    while (gap > 8 && count * (stride + gap) >= uint64_t{1} << kSlotBits) gap /= 2;
    return static_cast<uint32_t>(stride + gap);
}

void EmulatedMap::set_slot(uint32_t place, uint32_t slot) {
    set(slots_[place], slot ^ place);
    set(owners_[slot], place ^ slot);
}

/// The values that the object brings along.
void EmulatedMap::fill(const MapSpec &spec) {
    if (kind_ == MapEngine::array && !spec.contents.empty())
        std::memcpy(values_, spec.contents.data(), std::min<uint64_t>(spec.contents.size(), uint64_t{max_entries_} * stride_));
    if (kind_ == MapEngine::arena && !spec.contents.empty()) {
        std::memcpy(values_, spec.contents.data(), spec.contents.size());
        std::memset(used_, 1, (spec.contents.size() + page_ - 1) / page_);
    }
    if (kind_ == MapEngine::targets)
        for (uint32_t n = 0; n < max_entries_ && (uint64_t{n} + 1) * kTarget <= spec.contents.size(); ++n) {
            uint32_t insn;
            std::memcpy(&insn, spec.contents.data() + uint64_t{n} * kTarget, sizeof insn);
            const uint64_t address = kCodeAddress + 8 * uint64_t{insn};
            std::memcpy(values_ + uint64_t{n} * stride_, &address, sizeof address);
        }
}

/// Gives the values, and the keys that callbacks see, addresses.
Result<void> EmulatedMap::expose(const MapSpec &spec, Memory &memory, uint64_t values, uint64_t keys) {
    const uint64_t n = max_entries_;
    switch (kind_) {
    case MapEngine::array:
    case MapEngine::hash:
    case MapEngine::trie:
    case MapEngine::ring:
    case MapEngine::arena:
    case MapEngine::targets: break;
    default: return {}; // values are only ever copied, or stand for something else
    }
    if (values) {
        Object object;
        object.name = spec.data_section.empty() ? format("map {}", spec.name) : spec.data_section;
        object.size = values;
        object.bytes = values_;
        object.writable = !(spec.flags & BPF_F_RDONLY_PROG) && kind_ != MapEngine::targets;
        const bool whole = kind_ == MapEngine::ring || kind_ == MapEngine::arena || kind_ == MapEngine::targets;
        if (!whole && (n > 1 || hashed())) {
            object.stride = stride_;
            object.spread = spread_;
            object.element = value_size_;
            object.size = values / stride_ * spread_;
        }
        if (!whole && n == 1 && !hashed()) object.size = value_size_;
        if (kind_ == MapEngine::ring) object.part = record_part, object.context = this;
        if (kind_ == MapEngine::arena) object.part = pages_part, object.context = this;
        address_ = TRY(memory.add(std::move(object)));
    }
    if (kind_ != MapEngine::array && kind_ != MapEngine::hash && kind_ != MapEngine::trie) return {};
    Object key;
    key.name = format("a key of map {}", spec.name);
    key.size = keys;
    key.bytes = keys_;
    key.writable = false;
    if (hashed()) {
        key.stride = key_stride_;
        key.spread = key_spread_;
        key.element = key_size_;
        key.size = n * key_spread_;
    }
    keys_address_ = TRY(memory.add(std::move(key)));
    return {};
}

// ---- tables

bool EmulatedMap::same_key(const uint8_t *a, const uint8_t *b) const {
    if (kind_ != MapEngine::trie) return std::memcmp(a, b, key_size_) == 0;
    const uint32_t bits = prefix_bits(a), bytes = bits / 8;
    if (prefix_bits(b) != bits || std::memcmp(a + kTrieHeader, b + kTrieHeader, bytes) != 0) return false;
    const int over = static_cast<int>(bits % 8);
    return over == 0 || ((a[kTrieHeader + bytes] ^ b[kTrieHeader + bytes]) >> (8 - over)) == 0;
}

uint32_t EmulatedMap::bucket_of(const uint8_t *key) const {
    uint64_t h = 0xcbf29ce484222325; // FNV-1a
    *work_ += 1 + key_size_ / kBytesPerWork;
    auto take = [&](uint8_t byte) { h = (h ^ byte) * 0x100000001b3; };
    if (kind_ == MapEngine::trie) {
        const uint32_t bits = prefix_bits(key);
        take(static_cast<uint8_t>(bits));
        take(static_cast<uint8_t>(bits >> 8));
        for (uint32_t i = 0; i < bits / 8; ++i) take(key[kTrieHeader + i]);
        if (bits % 8) take(static_cast<uint8_t>(key[kTrieHeader + bits / 8] & 0xff00 >> bits % 8));
    } else {
        for (uint32_t i = 0; i < key_size_; ++i) take(key[i]);
    }
    return static_cast<uint32_t>(h ^ h >> 32) & (buckets_ - 1);
}

uint32_t EmulatedMap::find(const uint8_t *key, uint32_t bucket) const {
    for (uint32_t at = first_[bucket]; at; at = next_[at - 1], ++*work_)
        if (same_key(own_key(at - 1), key)) return at;
    return 0;
}

uint32_t EmulatedMap::longest_prefix(const uint8_t *key) const {
    uint8_t shorter[kTrieHeader + kMostTrieBytes];
    std::memcpy(shorter, key, key_size_);
    uint32_t bits = prefix_bits(key);
    if (bits > 8 * (key_size_ - kTrieHeader)) return 0;
    for (;; --bits) {
        std::memcpy(shorter, &bits, sizeof bits);
        if (const uint32_t at = find(shorter, bucket_of(shorter))) return at;
        if (bits == 0) return 0;
    }
}

void EmulatedMap::unlink(uint32_t place, uint32_t bucket) {
    gone(place);
    uint32_t *link = &first_[bucket];
    for (; *link != place + 1; ++*work_) link = &next_[*link - 1];
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
    for (;; head_->hand = (head_->hand + 1) % max_entries_, ++*work_) {
        uint8_t &used = used_[head_->hand];
        if (used == 1) break;
        if (used == 2) set(used, uint8_t{1});
    }
    const uint32_t place = head_->hand;
    unlink(place, bucket_of(own_key(place)));
    return place;
}

/// The place gets another slot for its value; the old one's bytes stay what they are until it is used again.
void EmulatedMap::replace_value(uint32_t place) {
    gone(place);
    const uint32_t old = slot_of(place);
    if (!preallocated_ && head_->free) { // the element that was freed last
        const uint32_t freed = head_->free - 1;
        set_slot(place, slot_of(freed));
        set_slot(freed, old);
        return;
    }
    set_slot(place, head_->spare);
    set(owners_[old], max_entries_ ^ old); // nobody's
    set(head_->spare, old);
}

uint64_t EmulatedMap::lookup(const uint8_t *key) {
    if (kind_ == MapEngine::array || kind_ == MapEngine::maps || kind_ == MapEngine::targets) {
        uint32_t index;
        std::memcpy(&index, key, sizeof index);
        if (index >= max_entries_) return 0;
        if (kind_ != MapEngine::maps) return value_address(index);
        uint64_t handle;
        std::memcpy(&handle, value_at(index), sizeof handle);
        return handle;
    }
    const uint32_t at = kind_ == MapEngine::trie ? longest_prefix(key) : find(key, bucket_of(key));
    if (!at) return 0;
    if (kind_ == MapEngine::map_set) {
        uint64_t handle;
        std::memcpy(&handle, value_at(at - 1), sizeof handle);
        return handle;
    }
    if (lru_ && used_[at - 1] != 2) set(used_[at - 1], uint8_t{2});
    return value_address(at - 1);
}

/// A lock isn't copied: nobody holds it outside of the calls that the verifier pairs, and to all others it is 0.
void EmulatedMap::write(uint32_t place, const uint8_t *value) {
    journal_->note(value_at(place), value_size_);
    std::memmove(value_at(place), value, value_size_);
    if (lock_) std::memset(value_at(place) + *lock_, 0, sizeof(bpf_spin_lock));
}

int64_t EmulatedMap::update(const uint8_t *key, const uint8_t *value, uint64_t flags) {
    const bool may_lock = kind_ == MapEngine::array || (!per_cpu_ && !lru_ && kind_ != MapEngine::trie);
    if ((may_lock ? flags & ~uint64_t{BPF_F_LOCK} : flags) > BPF_EXIST) return -EINVAL;
    const uint64_t how = flags & 3;
    if (kind_ == MapEngine::array) {
        uint32_t index;
        std::memcpy(&index, key, sizeof index);
        if (index >= max_entries_) return -E2BIG;
        if (how & BPF_NOEXIST) return -EEXIST;
        if (flags & BPF_F_LOCK && !lock_) return -EINVAL;
        gone(index);
        write(index, value);
        return 0;
    }
    if (flags & BPF_F_LOCK && !lock_) return -EINVAL;
    if (kind_ == MapEngine::trie && prefix_bits(key) > 8 * (key_size_ - kTrieHeader)) return -EINVAL;
    const uint32_t bucket = bucket_of(key);
    uint32_t at = find(key, bucket);
    if (at && how == BPF_NOEXIST) return -EEXIST;
    if (!at && how == BPF_EXIST) return -ENOENT;
    if (!at) {
        if (head_->count == max_entries_) {
            if (!lru_) return kind_ == MapEngine::trie ? -ENOSPC : -E2BIG;
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
        set(next_[at - 1], first_[bucket]);
        set(first_[bucket], at);
        set(used_[at - 1], uint8_t{1});
    } else {
        if (lru_ && used_[at - 1] != 2) set(used_[at - 1], uint8_t{2});
        if (!per_cpu_ && !(flags & BPF_F_LOCK)) replace_value(at - 1); // under the lock, the value is written where it is
    }
    // A trie keeps the bits behind the prefix, too, and those of the last update.
    journal_->note(own_key(at - 1), key_size_);
    std::memmove(own_key(at - 1), key, key_size_);
    write(at - 1, value);
    return 0;
}

int64_t EmulatedMap::erase(const uint8_t *key) {
    if (kind_ == MapEngine::array) return -EINVAL;
    if (kind_ == MapEngine::trie && prefix_bits(key) > 8 * (key_size_ - kTrieHeader)) return -EINVAL;
    const uint32_t bucket = bucket_of(key), at = find(key, bucket);
    if (!at) return -ENOENT;
    unlink(at - 1, bucket);
    return 0;
}

bool EmulatedMap::set_inner(uint32_t index, uint64_t handle) {
    if (kind_ == MapEngine::map_set) {
        std::vector<uint8_t> key(std::max<size_t>(key_size_, sizeof index));
        std::memcpy(key.data(), &index, sizeof index);
        return update(key.data(), reinterpret_cast<const uint8_t *>(&handle), BPF_ANY) == 0;
    }
    if (index >= max_entries_) return false;
    std::memcpy(value_at(index), &handle, sizeof handle);
    return true;
}

uint32_t EmulatedMap::next_entry(uint32_t place) const {
    if (kind_ == MapEngine::array) return place < max_entries_ ? place : max_entries_;
    if (kind_ != MapEngine::hash && kind_ != MapEngine::trie) return max_entries_;
    for (const uint32_t begin = place; place < head_->fresh; ++place)
        if (used_[place]) {
            *work_ += (place - begin) / kBytesPerWork;
            return place;
        }
    return max_entries_;
}

uint32_t EmulatedMap::place_of(uint64_t address, uint64_t size) const {
    if (address < address_ || spread_ == 0 || (kind_ != MapEngine::array && kind_ != MapEngine::hash)) return max_entries_;
    const uint64_t slot = (address - address_) / spread_, at = (address - address_) % spread_;
    if (slot > max_entries_ || (!hashed() && slot == max_entries_) || at + size > value_size_) return max_entries_;
    const uint32_t place = owner_of(static_cast<uint32_t>(slot));
    return place < max_entries_ && (!hashed() || used_[place]) ? place : max_entries_;
}

const uint8_t *EmulatedMap::key_at(uint32_t place, uint32_t &array_key) const {
    array_key = place;
    return hashed() ? own_key(place) : reinterpret_cast<const uint8_t *>(&array_key);
}

uint64_t EmulatedMap::key_address(uint32_t place) {
    if (hashed()) return keys_address_ + uint64_t{place} * key_spread_;
    journal_->note(keys_, sizeof place);
    std::memcpy(keys_, &place, sizeof place);
    return keys_address_;
}

} // namespace rawbpf::inline v0::emulator
