// One entry of a loaded map: its key and value as people write them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "programs/running/names.h"
#include "runtime/base/result.h"
#include "runtime/kernel/map.h"

namespace rawbpf::inline v0::running {

/// A key of the map as bytes: by the type that the map was loaded with (runtime/btf/parse_value.h), or else a number of 1, 2, 4
/// or 8 bytes, or bytes in hexadecimal ("0a 00 00 01"). "hex:..." is bytes in any case. Errors: invalid_argument, with what would
/// do.
[[nodiscard]] Result<std::vector<std::byte>> parse_key(const Map &map, Names &names, std::string_view text);
/// A value, in the same ways, as update() takes it: of a per-CPU map the same for each CPU. Of maps that hold programs or maps:
/// an id, a name or a pin.
class EntryValue {
  public:
    [[nodiscard]] static Result<EntryValue> parse(const Map &map, Names &names, std::string_view text);
    [[nodiscard]] const std::byte *data() const { return bytes_.data(); }

  private:
    std::vector<std::byte> bytes_;
    Fd held_; ///< what the bytes refer to
};

} // namespace rawbpf::inline v0::running
