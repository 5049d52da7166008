// The terminal's alternate screen, as less(1) and top(1) use it: when the command ends, except by kill -9, the terminal shows the
// shell's lines again, followed by what the command prints at its end.
#include "cli/other_screen.h"

#include <string>

#include "cli/console.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l", kLeave = "\x1b[?25h\x1b[?1049l";

} // namespace

OtherScreen::OtherScreen() { (void)print(kEnter); }
OtherScreen::~OtherScreen() { (void)print(kLeave); }

void OtherScreen::draw(std::string_view lines) const {
    std::string text = "\x1b[H";
    for (const char c : lines) c == '\n' ? text += "\x1b[K\r\n" : text += c;
    text += "\x1b[K\x1b[J";
    (void)print(text); // a terminal that has gone sends SIGHUP, which ends the command
}

} // namespace rawbpf::inline v0::cli
