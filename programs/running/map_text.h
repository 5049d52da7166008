// A loaded map's entries as text and as JSON, by the types that the map was loaded with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "programs/load/entry_text.h"
#include "programs/render/json_line.h"
#include "programs/running/names.h"
#include "runtime/base/bytes.h"
#include "runtime/kernel/map.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::running {

/// Keeps references to all that it is given.
class MapText {
  public:
    MapText(const Map &map, const sys::MapInfo &info, Names &names, bool json);

    /// "map 12 counts (hash): key 4 B, value 8 B, 10 entries at most"
    [[nodiscard]] std::string heading() const;
    void key(std::string &out, Bytes key) const { text_.key(out, key); }
    /// A value as a lookup gives it; of maps of programs and maps their ids and names.
    void value(std::string &out, Bytes value) const;
    /// The global variables of an object, which are one entry: each as text. False: the map holds none.
    bool each_variable(Bytes value, const std::function<void(std::string_view name, const std::string &text)> &see) const;
    /// Whether it is such a map.
    [[nodiscard]] bool has_variables() const;
    /// bpftool's fields: "key", "value" or "values" as bytes, and "formatted" by their types (null without types).
    void fields(render::JsonObject &object, std::string &out, Bytes key, Bytes value) const;

  private:
    bool reference(std::string &out, Bytes value) const;
    bool variables_json(render::JsonObject &formatted, Bytes value) const;
    template <class Write> void each_cpu_json(std::string &out, Bytes value, Write write) const;

    const Map &map_;
    const sys::MapInfo &info_;
    Names &names_;
    load_tool::EntryTypes types_;
    load_tool::EntryText text_;
};

/// Why a map's entries can't be listed, as an error that names it; nothing where they can.
[[nodiscard]] Result<void> check_listable(const sys::MapInfo &info);

} // namespace rawbpf::inline v0::running
