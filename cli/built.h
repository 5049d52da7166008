// Which parts this build has. Apart from parts.h, which everything includes: -Dparts with another value compiles only the files
// anew that ask.
#pragma once

#include <array>

#include "cli/parts.h"
#include "cli/this_build.h"

namespace rawbpf::inline v0::cli {

/// Whether this build has the part.
[[nodiscard]] consteval bool has(Part part) {
    return part == Part::core || has_word(RAWBPF_PARTS, kParts[static_cast<size_t>(part)].name);
}

/// The same of a part that isn't known when this is compiled: an option's.
[[nodiscard]] inline bool is_built(Part part) {
    static constexpr auto kBuilt = [] {
        std::array<bool, std::size(kParts)> out{};
        for (size_t i = 0; i < out.size(); ++i) out[i] = i == 0 || has_word(RAWBPF_PARTS, kParts[i].name);
        return out;
    }();
    return kBuilt[static_cast<size_t>(part)];
}

} // namespace rawbpf::inline v0::cli
