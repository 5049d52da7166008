// Which parts this build has. Apart from parts.h, which everything includes: -Dparts with another value compiles only the files
// anew that ask.
#pragma once

#include "cli/parts.h"
#include "cli/this_build.h"

namespace rawbpf::inline v0::cli {

/// Whether this build has the part.
[[nodiscard]] consteval bool has(Part part) {
    return part == Part::core || has_word(RAWBPF_PARTS, kParts[static_cast<size_t>(part)].name);
}

} // namespace rawbpf::inline v0::cli
