// The nearest name by edit distance: letters inserted, removed, replaced, one row of the table at a time.
#include "asm/nearest.h"

#include <algorithm>
#include <vector>

namespace rawbpf::inline v0 {

void Nearest::offer(std::string_view name) {
    constexpr size_t kLongest = 64;
    if (name.empty() || name.size() > kLongest || word_.size() > kLongest) return;
    const size_t difference = name.size() > word_.size() ? name.size() - word_.size() : word_.size() - name.size();
    if (difference >= best_) return;
    size_t row[kLongest + 1] = {};
    for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word_.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= name.size(); ++j) {
            const size_t replaced = diagonal + (word_[i - 1] != name[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
        }
    }
    if (row[name.size()] >= best_) return;
    best_ = row[name.size()];
    name_ = name;
}

std::string Nearest::hint() const { return name_.empty() ? std::string() : "did you mean `" + name_ + "`?"; }

} // namespace rawbpf::inline v0
