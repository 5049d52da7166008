// Reads JSON: the lines that rawbpf itself has written, and that may have been edited since. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0::compare {

/// A value with everything in it.
struct Json {
    enum class Kind : uint8_t { null, truth, number, text, list, object };
    Kind kind = Kind::null;
    bool truth = false;
    double number = 0;
    std::string text;
    std::vector<std::string> names{}; ///< of an object's members, beside `items`
    std::vector<Json> items{};

    /// A member; nullptr: it has none of that name, or is no object.
    [[nodiscard]] const Json *member(std::string_view name) const;
    /// The text of a member that is one, else "".
    [[nodiscard]] std::string_view text_of(std::string_view name) const;
    [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
};

/// One value and nothing behind it. Errors: bad_input, with the column (from 1) and what was expected there; more than 32 levels.
[[nodiscard]] Result<Json> parse_json(std::string_view text);

} // namespace rawbpf::inline v0::compare
