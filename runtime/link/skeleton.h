// SPDX-License-Identifier: MIT
// The base of the headers that `rawbpf gen skeleton` writes: an object that is opened, loaded and attached, with its global
// variables in this process's memory.
//
//      open()      the embedded object is parsed; variables have their first values and may be changed
//      load()      maps are made and filled, programs verified; .rodata is frozen, .data and .bss are the
//                  kernel's own pages from then on
//      attach()    every program whose section says where
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel/loader.h"
#include "runtime/link/attach.h"

namespace rawbpf::inline v0 {

/// A map whose keys and values have types.
template <class K, class V> class TypedMap {
  public:
    /// `map` must not be nullptr, and outlives this.
    explicit TypedMap(Map *map) : map_(map) {}
    /// What the functions of that name in Map do, with K and V in their places.
    ///@{
    [[nodiscard]] Result<V> get(const K &key) const { return map_->template get<K, V>(key); }
    [[nodiscard]] Result<std::vector<V>> get_per_cpu(const K &key) const { return map_->template get_per_cpu<K, V>(key); }
    [[nodiscard]] Result<void> put(const K &key, const V &value, uint64_t flags = 0) const {
        return map_->template put<K, V>(key, value, flags);
    }
    [[nodiscard]] Result<void> erase(const K &key) const { return map_->erase(&key); }
    ///@}
    /// All entries. Errors: invalid_argument for a per-CPU map.
    [[nodiscard]] Result<std::vector<std::pair<K, V>>> entries() const {
        if (Result<void> fits = map_->check_sizes(sizeof(K), sizeof(V), map_->lookup_size()); !fits)
            return std::move(fits).failure();
        Map::Entries raw = RAWBPF_TRY(map_->read_all());
        std::vector<std::pair<K, V>> out;
        for (size_t i = 0; i < raw.count; ++i)
            out.emplace_back(load<K>(raw.keys.data() + i * sizeof(K)), load<V>(raw.values.data() + i * sizeof(V)));
        return out;
    }
    /// The map without types.
    [[nodiscard]] Map &map() const { return *map_; }

  private:
    Map *map_;
};

/// What every generated class derives from: one object through open(), load() and attach(). Dropping it detaches and frees all
/// of it.
class Skeleton {
  public:
    /// What will be loaded; may be changed until load().
    [[nodiscard]] ObjectSpec &spec() { return spec_; }
    /// Empty until load().
    [[nodiscard]] LoadedObject &object() { return object_; }
    /// Loads once. Errors: as rawbpf::load().
    [[nodiscard]] Result<void> load(const LoadOptions &options = {});
    /// Attaches every program whose section or `places` say where. Errors: as attach_object(); invalid_argument before load().
    [[nodiscard]] Result<void> attach(const AttachPlaces &places = {});
    /// Drops all links and notes; programs and maps stay loaded, and attach() may be called again.
    void detach() { attached_ = {}; }
    /// What attach() attached; empty before.
    [[nodiscard]] std::vector<Link> &links() { return attached_.links; }
    /// Why programs weren't attached, a sentence each.
    [[nodiscard]] const std::vector<std::string> &notes() const { return attached_.notes; }

  protected:
    Skeleton() = default;
    /// Parses an object file and gives its variables memory. `object` is only needed during the call. Errors: as parse_object().
    [[nodiscard]] static Result<void> open(Skeleton &into, Bytes object, std::string_view name);
    /// The variables of a section. Writing to .rodata after load() ends the process: its pages are read-only.
    [[nodiscard]] void *variables(std::string_view section);
    /// Only after load(): the spec's map and program of that name; nullptr for one that wasn't made or loaded.
    ///@{
    [[nodiscard]] Map *map(std::string_view name) { return object_.find_map(name); }
    [[nodiscard]] Program *program(std::string_view name) { return object_.find_program(name); }
    ///@}

  private:
    struct Variables {
        std::string section;
        size_t map = 0;
        sys::Mapping pages = {}; ///< after load()
    };
    ObjectSpec spec_;
    LoadedObject object_;
    std::vector<Variables> variables_;
    Attached attached_;
    bool loaded_ = false;
};

} // namespace rawbpf::inline v0
