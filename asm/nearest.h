// "Did you mean ...?" For the assembler's names, and for the command line's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0 {

/// Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other; of the first 64 letters of
/// each.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

/// The register that a word was probably meant to be: `R0` and `ro` r0, `x7` and `rl` a register each, `W3` w3. Empty: it doesn't
/// look like one.
[[nodiscard]] std::string near_register(std::string_view word);

/// Remembers the one of the names offered that is nearest to a word: it holds the word, or few steps, beside the word's length,
/// lead to it.
class Nearest {
  public:
    /// The word must outlive it.
    explicit Nearest(std::string_view word) : word_(word), steps_(word.size() < 3 ? word.size() / 2 : word.size() / 3) {}
    /// A name that may be meant; it is copied where it is the nearest so far.
    void offer(std::string_view name);
    /// "did you mean `name`?", or nothing when none is near.
    [[nodiscard]] std::string hint() const;
    /// The same where a register may be meant.
    [[nodiscard]] std::string hint_or_register() const;

  private:
    [[nodiscard]] bool holds_word(std::string_view name) const;
    std::string_view word_;
    std::string name_;
    size_t steps_;             ///< of the nearest so far; at first, the most that are near: a third of the word
    size_t longer_ = SIZE_MAX; ///< by how many letters it and the word differ in length
};

} // namespace rawbpf::inline v0
