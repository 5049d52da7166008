// "Did you mean ...?" Private to the room.
#pragma once

#include <string>
#include <string_view>

namespace rawbpf::inline v0 {

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
