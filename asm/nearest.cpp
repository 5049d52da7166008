// The nearest name: Damerau and Levenshtein's distance in its restricted form (letters inserted, removed, replaced, and
// neighbours swapped, each one mistake), by dynamic programming over three rows of fixed length.
#include "asm/nearest.h"

#include <algorithm>

namespace rawbpf::inline v0 {

namespace {
constexpr size_t kLongest = 64;
} // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
    a = a.substr(0, kLongest);
    b = b.substr(0, kLongest);
    size_t rows[3][kLongest + 1] = {};
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::string near_register(std::string_view word) {
    if (word.empty() || word.size() > 4) return {};
    std::string lower(word);
    for (char &c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower == "fp" || lower == "sp") return "r10";
    const bool half = lower[0] == 'w';
    std::string digits = lower.substr(lower.find_first_of("0123456789") == std::string::npos ? 1 : 0);
    if (digits.size() == lower.size()) { // letters, then a number: another machine's register, or another case
        const size_t number = lower.find_first_of("0123456789");
        digits = number == 1 ? lower.substr(number) : std::string("?"); // `be24` is none
    } else {
        if (lower[0] != 'r' && lower[0] != 'w') return {};
        if (digits.empty()) digits = "0";
    }
    size_t number = 0;
    for (char c : digits) {
        c = c == 'o' ? '0' : c == 'l' || c == 'i' ? '1' : c;
        if (c < '0' || c > '9') return {};
        number = number * 10 + static_cast<size_t>(c - '0');
    }
    return (half ? "w" : "r") + std::to_string(number <= 10 ? number : 10);
}

// Who writes `map_lookup` means the name that goes on from there, or that has it inside; a short word is in too many names.
bool Nearest::holds_word(std::string_view name) const {
    constexpr size_t kLeastBegin = 3, kLeastInside = 5;
    return (word_.size() >= kLeastBegin && name.starts_with(word_)) ||
           (word_.size() >= kLeastInside && name.find(word_) != std::string_view::npos);
}

void Nearest::offer(std::string_view name) {
    if (name.empty() || name.size() > kLongest || word_.size() > kLongest) return;
    const size_t longer = name.size() > word_.size() ? name.size() - word_.size() : word_.size() - name.size();
    const bool holds = holds_word(name);
    if (!holds && longer > steps_) return;
    const size_t steps = holds ? 1 : edit_distance(word_, name);
    if (steps > steps_ || (steps == steps_ && longer >= longer_)) return;
    steps_ = steps;
    longer_ = longer;
    name_ = name;
}

std::string Nearest::hint() const { return name_.empty() ? std::string() : "did you mean `" + name_ + "`?"; }

std::string Nearest::hint_or_register() const {
    const std::string near = near_register(word_);
    return near.empty() ? hint() : "did you mean `" + near + "`?";
}

} // namespace rawbpf::inline v0
