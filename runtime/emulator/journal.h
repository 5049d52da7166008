// SPDX-License-Identifier: MIT
// Old values of what is overwritten, so that a step can be undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

namespace rawbpf::inline v0::emulator {

/// A stack of bytes as they were. Off, it costs a comparison. Bounded: when it is full, the oldest steps can't be undone any
/// more.
class Journal {
  public:
    /// A journal that is off. `most_bytes`: the old values and 32 bytes for each, of all steps; the last step may exceed it.
    explicit Journal(size_t most_bytes = size_t{64} << 20) : most_(most_bytes) {}
    /// From here on begin() and note() record; before, they do nothing.
    void enable() { on_ = true; }
    /// Whether enable() was called.
    [[nodiscard]] bool on() const { return on_; }

    /// Forgets all steps. The journal stays on.
    void clear() {
        steps_.clear();
        bytes_ = 0;
    }
    /// Begins a step.
    void begin() {
        if (!on_) return;
        steps_.emplace_back();
        while (bytes_ > most_ && steps_.size() > 1) drop_oldest();
    }
    /// Must be called before `size` bytes at `at` change; `at` must stay where it is.
    void note(void *at, size_t size) {
        if (!on_ || steps_.empty() || size == 0) return;
        Change &change = steps_.back().emplace_back();
        change.at = static_cast<uint8_t *>(at);
        change.before.assign(change.at, change.at + size);
        bytes_ += size + sizeof(Change);
    }
    /// Steps that can be taken back.
    [[nodiscard]] size_t depth() const { return steps_.size(); }
    /// Puts everything back to where the last step began. False when there is no step.
    bool undo() {
        if (steps_.empty()) return false;
        std::vector<Change> &changes = steps_.back();
        for (size_t n = changes.size(); n-- > 0;) {
            std::memcpy(changes[n].at, changes[n].before.data(), changes[n].before.size());
            bytes_ -= changes[n].before.size() + sizeof(Change);
        }
        steps_.pop_back();
        return true;
    }

    /// One note(): bytes that the step was about to change.
    struct Change {
        uint8_t *at = nullptr;       ///< where they are
        std::vector<uint8_t> before; ///< what they were
    };
    /// What the last step changed, oldest first; nullptr: there is no step. Good until the next begin(), note(), undo() or
    /// clear().
    [[nodiscard]] const std::vector<Change> *last() const { return steps_.empty() ? nullptr : &steps_.back(); }

  private:
    void drop_oldest() {
        for (const Change &change : steps_.front()) bytes_ -= change.before.size() + sizeof(Change);
        steps_.pop_front();
    }
    bool on_ = false;
    size_t most_, bytes_ = 0;
    std::deque<std::vector<Change>> steps_;
};

} // namespace rawbpf::inline v0::emulator
