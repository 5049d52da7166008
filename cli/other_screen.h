// The terminal's other screen, for what is redrawn while a command runs.
#pragma once

#include <string_view>

namespace rawbpf::inline v0::cli {

/// Standard output is a terminal: what it shows comes back when this is dropped.
class OtherScreen {
  public:
    OtherScreen();
    ~OtherScreen();
    OtherScreen(const OtherScreen &) = delete;
    OtherScreen &operator=(const OtherScreen &) = delete;
    /// Replaces what is on it; no more lines, and none wider, than it has room for.
    void draw(std::string_view lines) const;
};

} // namespace rawbpf::inline v0::cli
