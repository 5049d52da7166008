// The known word that is nearest to a mistyped one, by the assembler's distance. A word that is longer than any option is
// truncated, so that a hostile one costs nothing.
#include "cli/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>

#include "asm/nearest.h"

namespace rawbpf::inline v0::cli {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

} // namespace

Suggestion nearest(std::string_view word, std::span<const std::string_view> candidates) {
    std::string typed;
    for (char c : word.substr(0, 64)) typed += lower(c);
    Suggestion best;
    size_t least = SIZE_MAX;
    for (std::string_view candidate : candidates) {
        size_t distance = edit_distance(typed, candidate);
        size_t shorter = std::min(typed.size(), candidate.size());
        bool prefix = shorter >= 2 && candidate.substr(0, shorter) == std::string_view(typed).substr(0, shorter);
        if (prefix) distance = std::min<size_t>(distance, 1); // "frequency" for "freq", "dur" for "duration"
        if (distance < least) {
            least = distance;
            best = {candidate, distance <= std::max<size_t>(1, std::max(typed.size(), candidate.size()) / 3)};
        }
    }
    return best;
}

} // namespace rawbpf::inline v0::cli
