// Maps as the emulator keeps them: bytes at invented addresses, with the kernel's semantics.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>

#include "runtime/emulator/journal.h"
#include "runtime/emulator/memory.h"
#include "runtime/object/spec.h"

namespace rawbpf::inline v0::emulator {

enum class MapKind : uint8_t { array, hash, programs, queue, stack, ring, records, unknown };

/// One map. All state is in one block of plain bytes, changed only after Journal::note(), so that it can be undone.
/// Per-CPU maps have the values of one CPU.
class EmulatedMap {
  public:
    /// Makes the map and adds its values to `memory`. Errors: invalid_argument for sizes that no kernel takes; no_memory.
    [[nodiscard]] static Result<std::unique_ptr<EmulatedMap>> create(const MapSpec &spec, Memory &memory, Journal &journal);

    [[nodiscard]] MapKind kind() const { return kind_; }
    [[nodiscard]] const std::string &name() const { return name_; }
    [[nodiscard]] uint32_t type() const { return type_; }
    [[nodiscard]] uint32_t key_size() const { return key_size_; }
    [[nodiscard]] uint32_t value_size() const { return value_size_; }
    [[nodiscard]] uint32_t max_entries() const { return max_entries_; }
    /// Of the first value, in the program's address space.
    [[nodiscard]] uint64_t address() const { return address_; }

    // The helpers' results: an address or 0; 0 or a negative errno.
    [[nodiscard]] uint64_t lookup(const uint8_t *key);
    [[nodiscard]] int64_t update(const uint8_t *key, const uint8_t *value, uint64_t flags);
    [[nodiscard]] int64_t erase(const uint8_t *key);
    [[nodiscard]] int64_t push(const uint8_t *value, uint64_t flags);
    [[nodiscard]] int64_t pop(uint8_t *value, bool remove);

    // Ring buffers. A record's bytes belong to the program from reserve to release.
    [[nodiscard]] uint64_t reserve(uint64_t size);
    /// False: no record that is reserved begins there.
    [[nodiscard]] bool release(uint64_t address, bool discard);
    [[nodiscard]] int64_t output(const uint8_t *data, uint64_t size);
    [[nodiscard]] uint64_t query(uint64_t what) const;
    [[nodiscard]] uint32_t records_held() const { return head_->open; }

    /// Entries in the order of their places: for loops over a map, and for looking at it afterwards. Returns the first place at
    /// or after `place` that has one; max_entries() when none has.
    [[nodiscard]] uint32_t next_entry(uint32_t place) const;
    [[nodiscard]] const uint8_t *key_at(uint32_t place, uint32_t &array_key) const;
    [[nodiscard]] uint8_t *value_at(uint32_t place) { return values_ + uint64_t{place} * stride_; }
    [[nodiscard]] uint64_t value_address(uint32_t place) const { return address_ + uint64_t{place} * stride_; }
    /// The key of the entry at `place`, in the program's address space (for_each_map_elem passes it).
    [[nodiscard]] uint64_t key_address(uint32_t place);
    /// What was submitted, or output, so far (queues: what is in them), oldest first.
    void each_record(const std::function<void(std::string_view)> &take) const;

  private:
    EmulatedMap() = default;
    struct Head {
        uint32_t count, free, fresh, hand; // hash: entries; the free list; places never used; where eviction looks next
        uint64_t produced, oldest;         // ring: bytes so far, and where reserved records may begin
        uint32_t open, pad;                // ring: records that are reserved
    };
    static bool record_part(const void *map, uint64_t offset, uint64_t &begin, uint64_t &end);
    [[nodiscard]] uint32_t find(const uint8_t *key, uint32_t bucket) const;
    [[nodiscard]] uint32_t bucket_of(const uint8_t *key) const;
    void unlink(uint32_t place, uint32_t bucket);
    uint32_t evict();
    template <class T> void set(T &what, T value) {
        journal_->note(&what, sizeof what);
        what = value;
    }

    Journal *journal_ = nullptr;
    MapKind kind_ = MapKind::unknown;
    std::string name_;
    uint32_t type_ = 0, key_size_ = 0, value_size_ = 0, max_entries_ = 0, stride_ = 0, buckets_ = 0;
    bool lru_ = false;
    uint64_t address_ = 0, keys_address_ = 0;
    struct Free {
        void operator()(void *p) const { std::free(p); }
    };
    std::unique_ptr<uint8_t, Free> block_;
    Head *head_ = nullptr;
    uint32_t *first_ = nullptr, *next_ = nullptr; // hash: place + 1 of a bucket's first, and of the next; 0 ends
    uint8_t *used_ = nullptr;                     // hash: 0 free, 1 used, 2 used lately
    uint8_t *keys_ = nullptr, *values_ = nullptr;
};

} // namespace rawbpf::inline v0::emulator
