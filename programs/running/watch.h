// What changes in a loaded map from one read to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "programs/render/writer.h"
#include "programs/running/changes.h"
#include "programs/running/map_text.h"
#include "programs/running/names.h"
#include "runtime/base/result.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::running {

/// Holds two copies of the map while it compares them.
class MapWatch {
  public:
    /// `most`: bytes that one copy may have. `map` and `names` stay the caller's. Errors: invalid_argument for maps whose entries
    /// can't be listed; the kernel's.
    [[nodiscard]] static Result<MapWatch> open(const Map &map, Names &names, bool json, uint64_t most);
    MapWatch(MapWatch &&) = default;

    /// Writes what isn't as it was at the look before; at the first look nothing was, and the map's heading (JSON:
    /// {"type":"map",...}) is in front. Text: "  12.0s  + KEY = VALUE" (new),
    /// "~ KEY = OLD -> NEW", "- KEY"; elements of arrays that are zero at the first look are left out. JSON: {"type":"change",
    /// "seconds","what","before","after"}, the last two null or with bpftool's fields. Errors: no_memory where a copy would have
    /// more than `most`; the kernel's; what writing gives.
    [[nodiscard]] Result<void> look(uint64_t since_start_ns, render::Writer &out);
    /// A first look that remembers, and writes the heading alone. Errors: as look()'s.
    [[nodiscard]] Result<void> remember(render::Writer &out);
    /// Lines that look() wrote, by what they say.
    struct Counts {
        uint64_t looks = 0, added = 0, changed = 0, removed = 0;
    };
    [[nodiscard]] const Counts &counts() const { return counts_; }

  private:
    MapWatch(const Map &map, std::unique_ptr<sys::MapInfo> info, Names &names, bool json, uint64_t most);
    void heading(render::Writer &out) const;
    void write(const MapChange &change, uint64_t ns, std::string &out) const;
    void write_json(const MapChange &change, uint64_t ns, std::string &out) const;
    [[nodiscard]] bool shown(const MapChange &change) const;
    [[nodiscard]] Result<MapImage> image() const;

    const Map *map_;
    std::unique_ptr<sys::MapInfo> info_; // text_ refers to it
    bool json_;
    uint64_t most_;
    MapText text_;
    MapImage before_;
    Counts counts_;
};

} // namespace rawbpf::inline v0::running
