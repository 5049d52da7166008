// "Did you mean": edit distance with a limit, so that 200,000 kernel functions are compared in milliseconds. Names whose
// length alone exceeds the limit are skipped, and a comparison ends when all of a row of the table exceeds it.
#include "runtime/link/names.h"

#include <algorithm>
#include <array>

#include "runtime/base/format.h"

namespace rawbpf::inline v0 {
namespace {

constexpr size_t kLongest = 127;

// Levenshtein distance, or bound + 1 where it is larger.
size_t distance(std::string_view a, std::string_view b, size_t bound) {
    if (a.size() > b.size()) std::swap(a, b);
    if (b.size() > kLongest || b.size() - a.size() > bound) return bound + 1;
    std::array<size_t, kLongest + 1> row;
    for (size_t i = 0; i <= a.size(); ++i) row[i] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
        size_t diagonal = row[0], least = row[0] = j;
        for (size_t i = 1; i <= a.size(); ++i) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[i];
            row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
            least = std::min(least, row[i]);
        }
        if (least > bound) return bound + 1;
    }
    return row[a.size()];
}

} // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
    size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p, ++t;
        } else if (star != std::string_view::npos) { // the last star takes one character more
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

NearestNames::NearestNames(std::string_view wanted) : wanted_(wanted) {}

void NearestNames::see(std::string_view name) {
    size_t bound = std::max<size_t>(1, wanted_.size() / 4);
    if (near_.size() == kShown) bound = std::min(bound, near_.back().distance);
    size_t d = distance(wanted_, name, bound);
    // One that goes on where the wanted one ends (vfs_read -> vfs_readv, do_exit -> do_exit.part.0) is near whatever its length.
    if (d > bound && wanted_.size() >= 4 && name.starts_with(wanted_)) d = bound;
    if (d > bound) return;
    for (const Near &other : near_)
        if (other.name == name) return;
    auto at = std::find_if(near_.begin(), near_.end(), [&](const Near &other) { return other.distance > d; });
    if (at == near_.end() && near_.size() == kShown) return;
    near_.insert(at, {d, std::string(name)});
    if (near_.size() > kShown) near_.pop_back();
}

std::string NearestNames::hint() const {
    std::string out;
    for (const Near &one : near_) append(out, "{}{}", out.empty() ? "did you mean " : ", ", one.name);
    return out.empty() ? out : out + "?";
}

} // namespace rawbpf::inline v0
