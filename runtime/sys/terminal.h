// A terminal that gives keys as they are pressed.
#pragma once

#include <termios.h>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::sys {

struct TerminalSize {
    int rows = 24, columns = 80;
    /// Whether both are the same.
    friend bool operator==(const TerminalSize &, const TerminalSize &) = default;
};
/// Of the terminal behind a descriptor; 24 by 80 where it is none, or doesn't know.
[[nodiscard]] TerminalSize terminal_size(int fd);

/// The controlling terminal (/dev/tty, so that standard input may be something else) without echo and line editing while this
/// lives; Ctrl-C stays a signal's. Put back as it was when dropped.
class [[nodiscard]] RawTerminal {
  public:
    static Result<RawTerminal> open();
    RawTerminal(RawTerminal &&) noexcept = default;
    RawTerminal &operator=(RawTerminal &&) = delete;
    ~RawTerminal();

    /// The next byte; 0 when there is none any more (a signal counts as none).
    [[nodiscard]] int key();
    /// The same, but kResized when the terminal's size isn't `shown` any more, which is looked at five times a second.
    [[nodiscard]] int key_or_resize(const TerminalSize &shown);
    static constexpr int kResized = -1;
    /// The same, but 0 when none comes within 50 ms: what follows an ESC.
    [[nodiscard]] int key_at_once();
    using Size = TerminalSize;
    [[nodiscard]] Size size() const { return terminal_size(fd_.get()); }
    [[nodiscard]] int fd() const { return fd_.get(); }

  private:
    RawTerminal() = default;
    Fd fd_;
    termios before_{};
};

} // namespace rawbpf::inline v0::sys
