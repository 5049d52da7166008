// One entry of a map as text: its key and its value, by their types.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/btf/btf.h"
#include "runtime/btf/print_value.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::load_tool {

/// Why the entries of maps of a type (BPF_MAP_TYPE_*) can't be listed, as a clause; empty: they can.
[[nodiscard]] std::string_view why_unreadable(uint32_t map_type);

/// What the bytes of a map are. Without types (nullptr, or 0) they are numbers and hexadecimal digits.
struct EntryTypes {
    const btf::Btf *btf = nullptr;
    btf::TypeId key = 0, value = 0;
};

/// Writes keys and values of one map. Keeps references to the map and the types.
class EntryText {
  public:
    EntryText(const Map &map, EntryTypes types, btf::ValueStyle style) : map_(map), types_(types), style_(style) {}
    void key(std::string &out, Bytes key) const { one(out, types_.key, key); }
    /// A value as a lookup gives it. Of a map with a value for each CPU: all of them in JSON, an array; in text those that aren't
    /// zero, "[cpu 0] 1, [cpu 3] 2".
    void value(std::string &out, Bytes value) const;
    /// One CPU's value.
    void one_value(std::string &out, Bytes value) const { one(out, types_.value, value); }
    /// Shows each CPU's value; of a map without such the only one.
    void each_cpu(Bytes value, const std::function<void(size_t cpu, Bytes one)> &see) const;

  private:
    void one(std::string &out, btf::TypeId type, Bytes bytes) const;

    const Map &map_;
    EntryTypes types_;
    btf::ValueStyle style_;
};

/// Shows each variable of a section of global variables (BTF_KIND_DATASEC), with its bytes. False: the type is none, or broken.
bool each_variable(const btf::Btf &btf, btf::TypeId section, Bytes bytes,
                   const std::function<void(std::string_view name, btf::TypeId type, Bytes bytes)> &see);

} // namespace rawbpf::inline v0::load_tool
