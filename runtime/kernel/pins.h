// SPDX-License-Identifier: MIT
// The pins made so far for an operation that may still fail: removed together, unless they are kept.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rawbpf::inline v0 {

/// Pins and the directories made for them. Dropped without keep(), it removes them again, the last one first.
class [[nodiscard]] Pins {
  public:
    Pins() = default;
    /// The one moved from has no pins any more. What was assigned to removes its own first.
    ///@{
    Pins(Pins &&other) noexcept;
    Pins &operator=(Pins &&other) noexcept;
    ///@}
    ~Pins() { take_back(); }
    /// Makes one level of directory; one that is there already is none of ours.
    [[nodiscard]] Result<void> directory(const std::string &path);
    /// BPF_OBJ_PIN, 4.4, as PATH/NAME, with underscores for dots and slashes: a bpf file system refuses dots.
    [[nodiscard]] Result<void> pin(int fd, const std::string &directory, std::string_view name);
    /// A pin that somebody else made a moment ago.
    void add(std::string path) { files_.push_back(std::move(path)); }
    /// Adds the other's; it has none then.
    void add(Pins &&other);
    /// All of it stays.
    void keep();
    /// Paths of the pins that would be removed, oldest first; empty after keep().
    [[nodiscard]] const std::vector<std::string> &files() const { return files_; }

  private:
    void take_back() noexcept;
    std::vector<std::string> files_, directories_;
};

} // namespace rawbpf::inline v0
