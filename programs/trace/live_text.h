// A text on a terminal that is drawn again and again, each time over the last one, while what it tells grows:
//
//      ESC [ 7 A     up, as many lines as the last text has there
//      ESC [ J       everything from here to the end of the screen is cleared
//      the text      no more lines than the terminal has; each is cut to its width, as one that wraps would be two to go up
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rawbpf::inline v0::sys {
struct TerminalSize; // runtime/sys/terminal.h
}

namespace rawbpf::inline v0::trace {

class LiveText {
  public:
    /// Appends what draws `text`, as much of it as that terminal has room for.
    void draw(std::string &out, std::string_view text, const sys::TerminalSize &size);
    /// Appends what takes the last one away.
    void clear(std::string &out);
    /// How many rows of a table that terminal has room for, with a head and what is said of those that are left out.
    [[nodiscard]] static uint32_t table_rows(const sys::TerminalSize &size);

  private:
    uint32_t drawn_ = 0; ///< lines that stand on the terminal
};

} // namespace rawbpf::inline v0::trace
