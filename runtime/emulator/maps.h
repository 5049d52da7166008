// SPDX-License-Identifier: MIT
// Maps of the emulator: bytes at virtual addresses, with the kernel's semantics.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include "asm/map_types.h"
#include "runtime/emulator/journal.h"
#include "runtime/emulator/limits.h"
#include "runtime/emulator/memory.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::emulator {

/// What arena pointers have above their 32 bits outside of the kernel; addr_space_cast(r, 0, 1) takes it off.
inline constexpr uint64_t kArenaUser = uint64_t{1} << 32;

/// One map. All state is in one block of plain bytes, changed only after Journal::note(), so that it can be undone.
/// Per-CPU maps have the values of one CPU.
class EmulatedMap {
  public:
    /// Makes the map and adds its values to `memory`. Errors: invalid_argument for sizes that no kernel takes; no_memory.
    /// `lock`: where in a value its bpf_spin_lock is (lock_in()).
    [[nodiscard]] static Result<std::unique_ptr<EmulatedMap>> create(const MapSpec &spec, Memory &memory, Journal &journal,
                                                                     std::optional<uint32_t> lock = {});

    /// Which code emulates it, by its type (asm/map_types.h); unknown: none does.
    [[nodiscard]] MapEngine kind() const { return kind_; }
    /// As in the MapSpec: the name, BPF_MAP_TYPE_*, sizes in bytes. But value_size() is 4 for maps of programs, and 8 for maps of
    /// maps and of instructions, whose values are addresses here.
    ///@{
    [[nodiscard]] const std::string &name() const { return name_; }
    [[nodiscard]] uint32_t type() const { return type_; }
    [[nodiscard]] uint32_t key_size() const { return key_size_; }
    [[nodiscard]] uint32_t value_size() const { return value_size_; }
    [[nodiscard]] uint32_t max_entries() const { return max_entries_; }
    ///@}
    /// Of the first value, in the program's address space; of an arena as user space has it.
    [[nodiscard]] uint64_t address() const { return address_ && kind_ == MapEngine::arena ? address_ | kArenaUser : address_; }
    /// Whether the type is a per-CPU one.
    [[nodiscard]] bool per_cpu() const { return per_cpu_; }

    /// What the helpers of that name do (bpf_map_lookup_elem() and so on), with their results: lookup() gives an address in the
    /// program's address space, or 0; the others 0, or a negative errno. key_size() and value_size() bytes are read or written.
    /// Only for kinds that have such an operation; `flags` are the helper's. pop() without `remove` is bpf_map_peek_elem().
    ///@{
    [[nodiscard]] uint64_t lookup(const uint8_t *key);
    [[nodiscard]] int64_t update(const uint8_t *key, const uint8_t *value, uint64_t flags);
    [[nodiscard]] int64_t erase(const uint8_t *key);
    [[nodiscard]] int64_t push(const uint8_t *value, uint64_t flags);
    [[nodiscard]] int64_t pop(uint8_t *value, bool remove);
    ///@}

    // Maps of maps: values are addresses that stand for maps.
    /// Before anything runs. False: an array has no such index, or a hash is full.
    [[nodiscard]] bool set_inner(uint32_t index, uint64_t handle);

    // Arenas: pages, all absent but for those of the object's variables.
    /// The address (as address()) of `pages` new ones, zeroed; at `wanted` unless that is 0. 0: there is no such room.
    [[nodiscard]] uint64_t allocate(uint64_t wanted, uint32_t pages);
    /// Takes pages away, from the one that holds `address` on; what lies outside the arena is ignored.
    void release_pages(uint64_t address, uint32_t pages);

    // Bloom filters.
    /// bpf_map_push_elem(). 0, or -EINVAL for flags other than BPF_ANY.
    [[nodiscard]] int64_t add(const uint8_t *value, uint64_t flags);
    /// bpf_map_peek_elem(). 0: perhaps; -ENOENT: certainly not.
    [[nodiscard]] int64_t may_contain(const uint8_t *value) const;

    // Ring buffers. A record's bytes belong to the program from reserve to release.
    /// bpf_ringbuf_reserve(). The address of the record's bytes; 0: it doesn't fit, or kMostOpenRecords are reserved.
    [[nodiscard]] uint64_t reserve(uint64_t size);
    /// False: no record that is reserved begins there.
    [[nodiscard]] bool release(uint64_t address, bool discard);
    /// bpf_ringbuf_output(). 0, or -EAGAIN where reserve() gives 0.
    [[nodiscard]] int64_t output(const uint8_t *data, uint64_t size);
    /// bpf_ringbuf_query(): BPF_RB_*. Nobody reads meanwhile, so the consumer's position is 0.
    [[nodiscard]] uint64_t query(uint64_t what) const;
    /// Records that are reserved and not yet released.
    [[nodiscard]] uint32_t records_held() const { return head_->open; }

    /// Where the steps that a search takes are counted.
    void count_work(uint64_t *work) { work_ = work; }
    /// Bytes of memory that the map takes.
    [[nodiscard]] uint64_t bytes() const { return bytes_; }
    /// Told of each value that is deleted, replaced or overwritten, before that happens.
    void tell_when_gone(void (*tell)(void *context, uint64_t address, uint32_t size), void *context) {
        gone_ = tell;
        gone_context_ = context;
    }

    /// Entries in the order of their places: for loops over a map, and for looking at it afterwards. Returns the first place at
    /// or after `place` that has one; max_entries() when none has.
    [[nodiscard]] uint32_t next_entry(uint32_t place) const;
    /// The place whose value holds these bytes; max_entries() when none does.
    [[nodiscard]] uint32_t place_of(uint64_t address, uint64_t size) const;
    /// The key of the entry at `place`: in the map, or for an array in `array_key`, which becomes the index.
    [[nodiscard]] const uint8_t *key_at(uint32_t place, uint32_t &array_key) const;
    /// The value of the entry at `place`, good until the entry is updated or deleted: its bytes here, and its address for
    /// programs.
    ///@{
    [[nodiscard]] uint8_t *value_at(uint32_t place) { return values_ + uint64_t{slot_of(place)} * stride_; }
    [[nodiscard]] uint64_t value_address(uint32_t place) const { return address_ + uint64_t{slot_of(place)} * spread_; }
    ///@}
    /// The key of the entry at `place`, in the program's address space (for_each_map_elem passes it).
    [[nodiscard]] uint64_t key_address(uint32_t place);
    /// What was submitted, or output, so far (queues: what is in them), oldest first.
    void each_record(const std::function<void(std::string_view)> &take) const;

  private:
    EmulatedMap() = default;
    struct Head {
        uint32_t count, free, fresh, hand; // hash: entries; the free list; places never used; where eviction looks next
        uint64_t produced;                 // ring: bytes so far
        uint32_t open;                     // ring: records that are reserved
        uint32_t spare;                    // hash: where the next value that replaces one goes
    };
    [[nodiscard]] Result<void> check(const MapSpec &spec);
    void fill(const MapSpec &spec);
    [[nodiscard]] Result<void> expose(const MapSpec &spec, Memory &memory, uint64_t values, uint64_t keys);
    [[nodiscard]] bool hashed() const {
        return kind_ == MapEngine::hash || kind_ == MapEngine::trie || kind_ == MapEngine::map_set;
    }
    [[nodiscard]] uint8_t *own_key(uint32_t place) const { return keys_ + uint64_t{place} * key_stride_; }
    [[nodiscard]] uint32_t slot_of(uint32_t place) const { return slots_ ? slots_[place] ^ place : place; }
    [[nodiscard]] uint32_t owner_of(uint32_t slot) const { return owners_ ? owners_[slot] ^ slot : slot; }
    void set_slot(uint32_t place, uint32_t slot);
    void write(uint32_t place, const uint8_t *value);
    [[nodiscard]] uint32_t spread_of(uint64_t stride, uint64_t count) const;
    [[nodiscard]] uint32_t open_record(uint64_t offset) const;
    [[nodiscard]] bool same_key(const uint8_t *a, const uint8_t *b) const;
    [[nodiscard]] uint32_t longest_prefix(const uint8_t *key) const;
    void replace_value(uint32_t place);
    [[nodiscard]] uint32_t bloom_bit(const uint8_t *value, uint32_t function) const;
    static bool pages_part(const void *map, uint64_t offset, uint64_t &begin, uint64_t &end);
    static bool record_part(const void *map, uint64_t offset, uint64_t &begin, uint64_t &end);
    [[nodiscard]] uint32_t find(const uint8_t *key, uint32_t bucket) const;
    [[nodiscard]] uint32_t bucket_of(const uint8_t *key) const;
    void unlink(uint32_t place, uint32_t bucket);
    uint32_t evict();
    void gone(uint32_t place) const {
        if (gone_) gone_(gone_context_, value_address(place), value_size_);
    }
    template <class T> void set(T &what, T value) {
        journal_->note(&what, sizeof what);
        what = value;
    }

    Journal *journal_ = nullptr;
    void (*gone_)(void *, uint64_t, uint32_t) = nullptr;
    void *gone_context_ = nullptr;
    MapEngine kind_ = MapEngine::unknown;
    std::string name_;
    uint32_t type_ = 0, key_size_ = 0, value_size_ = 0, max_entries_ = 0, stride_ = 0, key_stride_ = 0, buckets_ = 0;
    uint32_t spread_ = 0, key_spread_ = 0; // between the addresses of two values, or keys
    uint64_t bytes_ = 0;
    uint64_t unused_work_ = 0, *work_ = &unused_work_;
    uint32_t bloom_functions_ = 0, bloom_mask_ = 0;
    uint32_t page_ = 0; // arena
    bool lru_ = false, per_cpu_ = false, preallocated_ = true;
    std::optional<uint32_t> lock_; // where in a value its bpf_spin_lock is
    uint64_t address_ = 0, keys_address_ = 0;
    struct Free {
        void operator()(void *p) const { std::free(p); }
    };
    std::unique_ptr<uint8_t, Free> block_;
    Head *head_ = nullptr;
    uint32_t *first_ = nullptr, *next_ = nullptr; // hash: place + 1 of a bucket's first, and of the next; 0 ends
    uint32_t *slots_ = nullptr;                   // hash: where a place's value is, and
    uint32_t *owners_ = nullptr; // which place's a value is; both xor their own index, so that they begin as zeros
    struct Open {
        uint64_t begin, end;
    };
    Open *open_ = nullptr;    // ring: the records that are reserved, ascending
    uint8_t *used_ = nullptr; // hash: 0 free, 1 used, 2 used lately; arena: a page is there
    uint8_t *keys_ = nullptr, *values_ = nullptr;
};

} // namespace rawbpf::inline v0::emulator
