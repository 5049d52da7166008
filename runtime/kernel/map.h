// SPDX-License-Identifier: MIT
// A BPF map: its descriptor and the properties that are needed to read and write it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/bytes.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/object/spec.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0 {

/// A map of the kernel, by a descriptor that it owns. The kernel copies keys and values from and to the memory given.
class Map {
  public:
    Map() = default;
    /// The kernel's type that a struct_ops map holds (5.6).
    struct KernelValue {
        uint32_t type = 0;   ///< BTF id; 0: no such map
        uint32_t size = 0;   ///< of a value
        int module_btf = -1; ///< the type is of a module (6.9): its BTF
    };
    /// Creates the map in the kernel. Errors name the map and what it needs.
    [[nodiscard]] static Result<Map> create(const MapSpec &spec, int btf_fd = -1, const KernelValue *kernel = nullptr);
    /// Adopts a descriptor; asks the kernel for the map's properties.
    [[nodiscard]] static Result<Map> from_fd(Fd fd);

    /// Borrowed; -1 for a Map() that create() or from_fd() didn't make.
    [[nodiscard]] int fd() const { return fd_.get(); }
    /// The spec's. From from_fd() the kernel's: 15 characters at most, empty before 4.15.
    [[nodiscard]] const std::string &name() const { return name_; }
    /// BPF_MAP_TYPE_*.
    [[nodiscard]] uint32_t type() const { return type_; }
    /// In bytes; 0 for maps without keys.
    [[nodiscard]] uint32_t key_size() const { return key_size_; }
    [[nodiscard]] uint32_t value_size() const { return value_size_; } ///< of one CPU's value
    /// Entries, or bytes of a ring buffer. May be more than the spec says: a ring is rounded up to a power of two of whole pages.
    [[nodiscard]] uint32_t max_entries() const { return max_entries_; }
    [[nodiscard]] uint32_t flags() const { return flags_; } ///< BPF_F_*
    /// Whether a key has a value for each possible CPU.
    [[nodiscard]] bool per_cpu() const;
    /// Bytes that a lookup fills: value_size, or round_up(value_size, 8) x possible CPUs for a per-CPU map.
    [[nodiscard]] size_t lookup_size() const;

    /// not_found when the key isn't there; `value` must hold lookup_size() bytes.
    [[nodiscard]] Result<void> lookup(const void *key, void *value) const;
    /// BPF_MAP_UPDATE_ELEM with lookup_size() bytes of `value`. `flags`: BPF_ANY (0), BPF_NOEXIST, BPF_EXIST, BPF_F_LOCK. Errors:
    /// no_memory when the map is full (E2BIG; a trie: ENOSPC), invalid_argument for an index past the end (E2BIG), busy (EEXIST)
    /// and not_found (ENOENT) as the flags say; the kernel's.
    [[nodiscard]] Result<void> update(const void *key, const void *value, uint64_t flags = 0) const;
    /// BPF_MAP_DELETE_ELEM. Errors: not_found when the key isn't there; invalid_argument for an array (EINVAL).
    [[nodiscard]] Result<void> erase(const void *key) const;
    /// The key after `key` (nullptr: the first); not_found at the end.
    [[nodiscard]] Result<void> next_key(const void *key, void *next) const;
    /// BPF_MAP_FREEZE (5.2): from here on only programs can write to it. Not undone by anything.
    [[nodiscard]] Result<void> freeze() const;
    /// The map outlives its descriptors, under a path on a bpf file system, until that file is removed (BPF_OBJ_PIN, 4.4).
    [[nodiscard]] Result<void> pin(const std::string &path) const;

    /// Whether types fit this map: `key` bytes, and `value` bytes where it has `has`. Error: invalid_argument, which says what
    /// doesn't.
    [[nodiscard]] Result<void> check_sizes(size_t key, size_t value, size_t has) const;
    /// lookup() with types. Errors: also invalid_argument when sizeof(K) isn't key_size() or sizeof(V) isn't lookup_size().
    template <class K, class V> [[nodiscard]] Result<V> get(const K &key) const {
        V value{};
        if (Result<void> fits = check_sizes(sizeof(K), sizeof(V), lookup_size()); !fits) return std::move(fits).failure();
        if (Result<void> found = lookup(&key, &value); !found) return std::move(found).failure();
        return value;
    }
    /// Every CPU's value; index = possible CPU. Errors: as get(), but sizeof(V) is value_size().
    template <class K, class V> [[nodiscard]] Result<std::vector<V>> get_per_cpu(const K &key) const {
        std::vector<std::byte> raw(lookup_size());
        if (Result<void> fits = check_sizes(sizeof(K), sizeof(V), value_size_); !fits) return std::move(fits).failure();
        if (Result<void> found = lookup(&key, raw.data()); !found) return std::move(found).failure();
        std::vector<V> out;
        for (size_t at = 0; at + sizeof(V) <= raw.size(); at += (sizeof(V) + 7) / 8 * 8) out.push_back(load<V>(raw.data() + at));
        return out;
    }
    /// update() with types. Errors: also invalid_argument when sizeof(K) isn't key_size() or sizeof(V) isn't lookup_size().
    template <class K, class V> [[nodiscard]] Result<void> put(const K &key, const V &value, uint64_t flags = 0) const {
        if (Result<void> fits = check_sizes(sizeof(K), sizeof(V), lookup_size()); !fits) return std::move(fits).failure();
        return update(&key, &value, flags);
    }

    /// What read_all() read.
    struct Entries {
        std::vector<std::byte> keys, ///< concatenated, key_size() bytes each; empty for queues and stacks
            values;                  ///< concatenated, lookup_size() bytes each, in the keys' order
        size_t count = 0;            ///< entries
    };
    /// All entries, in batches (BPF_MAP_LOOKUP_BATCH, 5.6) or one by one where there is no batch command. `and_delete` takes them
    /// out. What others add or delete meanwhile may be missed. Errors: invalid_argument for a queue or stack without
    /// `and_delete`; the kernel's.
    [[nodiscard]] Result<Entries> read_all(bool and_delete = false) const;

  private:
    Fd fd_;
    std::string name_;
    uint32_t type_ = 0, key_size_ = 0, value_size_ = 0, max_entries_ = 0, flags_ = 0;
};

} // namespace rawbpf::inline v0
