// "Did you mean ...?" For the assembler's names, and for the command line's.
#pragma once

#include <string>
#include <string_view>

namespace rawbpf::inline v0 {

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other; of the first 64 letters of
/// each.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

/// Remembers the one of the names offered that is nearest to a word.
class Nearest {
  public:
    explicit Nearest(std::string_view word) : word_(word), best_(word.size() / 3 + 2) {}
    void offer(std::string_view name);
    /// "did you mean `name`?", or nothing when none is near.
    [[nodiscard]] std::string hint() const;

  private:
    std::string_view word_;
    std::string name_;
    size_t best_; ///< steps of the nearest so far, plus one
};

} // namespace rawbpf::inline v0
