// The nearest known word to a mistyped one: Damerau and Levenshtein's distance in its restricted form (a swapped pair counts as
// one mistake), by dynamic programming over three rows. Option names are short, so this costs nothing; words longer than any
// option are cut, so a hostile one costs nothing either.
#include "cli/suggest.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace rawbpf::inline v0::cli {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

} // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

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
