// "Did you mean ...?"
#pragma once

#include <span>
#include <string_view>

namespace rawbpf::inline v0::cli {

struct Suggestion {
    std::string_view word; ///< empty where there were no candidates
    bool close = false;    ///< near enough to be what was meant
};
/// The candidate nearest to `word`; a candidate that begins with the word, or the other way round, is near.
[[nodiscard]] Suggestion nearest(std::string_view word, std::span<const std::string_view> candidates);

} // namespace rawbpf::inline v0::cli
