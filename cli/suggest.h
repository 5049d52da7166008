// "Did you mean ...?"
#pragma once

#include <span>
#include <string_view>

namespace rawbpf::inline v0::cli {

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

struct Suggestion {
    std::string_view word; ///< empty where there were no candidates
    bool close = false;    ///< near enough to be what was meant
};
/// The candidate nearest to `word`; a candidate that begins with the word, or the other way round, is near.
[[nodiscard]] Suggestion nearest(std::string_view word, std::span<const std::string_view> candidates);

} // namespace rawbpf::inline v0::cli
