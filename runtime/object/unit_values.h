// The types of a unit's keys, values and variables in BTF. Private to runtime/object.
//
//      .map counts hash key u32 value event      key_type, value_type: INT "unsigned int", STRUCT "event"
//      .data limit u64 = 10                      VAR limit in DATASEC .data
//
// An object file has them for whoever loads it; a unit that is loaded as it is has them too, so that what a map holds can be
// printed, and a variable be set, by its type.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "asm/unit.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::object {

/// A name as the kernel's BTF loader takes it. `dots`: functions may have them.
[[nodiscard]] std::string legal_name(std::string_view name, bool dots = false);

class UnitValues {
  public:
    explicit UnitValues(btf::Writer &types) : types_(types) {}
    /// Adds the unit's structs. `int32`: the type "int", which is there already.
    [[nodiscard]] Result<void> start(const Unit &unit, btf::TypeId int32);
    /// "u32", "event", "u8[16]", and with `count` an array of it. Errors: invalid_argument.
    [[nodiscard]] Result<btf::TypeId> type_of(std::string_view name, uint32_t count = 0);
    /// The DATASEC of a data map's variables; 0 when it has none.
    [[nodiscard]] Result<btf::TypeId> section_of(const Unit &unit, const MapDef &map);

  private:
    btf::Writer &types_;
    std::string unit_name_;
    btf::TypeId int32_ = 0;
    std::map<std::string, btf::TypeId, std::less<>> basic_;
};

} // namespace rawbpf::inline v0::object
