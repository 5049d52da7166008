// SPDX-License-Identifier: MIT
// Text into bytes by their type: what a person writes for a global variable, a key or a value.
#pragma once

#include <span>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0::btf {

/// Where a variable's part lies: `.member` and `[index]`, any number of them.
struct ValuePart {
    TypeId type = 0;     ///< the part's own type
    uint64_t offset = 0; ///< bytes from the variable's start
};

/// The part of a variable of type `id` that `path` names: "" (all of it), ".pid", "[3]", ".limits[2].max". Members of anonymous
/// structs belong to what they are in. Errors: invalid_argument with what there is in its place; unsupported for a bitfield.
[[nodiscard]] Result<ValuePart> find_part(const Btf &btf, TypeId id, std::string_view path);

/// Writes `text` as a value of type `id` into `bytes` (the type's size of them, host byte order): integers (decimal, 0x, 'c'),
/// bool (true, false), enumerators by name, arrays of char as text with or without quotes, other arrays as "1,2,3" (the
/// rest becomes zero), pointers as numbers. Errors: invalid_argument when the text isn't such a value or doesn't fit, and says
/// what would; bad_input for a broken type.
[[nodiscard]] Result<void> parse_value(const Btf &btf, TypeId id, std::string_view text, std::span<std::byte> bytes);

} // namespace rawbpf::inline v0::btf
