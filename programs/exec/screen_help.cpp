// The page behind `?` in `rawbpf step`.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "programs/exec/stepper.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::exec {

namespace {

struct HelpRow {
    std::string_view keys, what;
};
constexpr HelpRow kRows[] = {
    {"n  space  right", "the next instruction"},
    {"b  left", "take the last step back; maps and memory, too"},
    {"o", "step over a call: the called function runs to its end"},
    {"l", "run to the next source line"},
    {"c", "run on: to a breakpoint, a change of a watched register, or the end"},
    {"C", "run back: to one of them, or the beginning"},
    {"g", "go to a step, by its number, forwards or back"},
    {"h", "home: the beginning"},
    {"up down  k j", "move the cursor |"},
    {"t", "set a breakpoint at the cursor, or remove it"},
    {"w", "watch a register, or stop watching it"},
    {"m", "below the stack: the memory or packet, the maps' contents, the calls"},
    {"PageDown PageUp", "more of them"},
    {"v", "show or hide what the verifier knows"},
    {"?", "this page"},
    {"q", "quit"},
    {"", ""},
    {"*r3 7 scalar(umax=9)", "r3 is 7 now, and the last step changed it; on the path of this run, the verifier knows that it is "
                             "a number from 0 to 9. A - means that nothing is known, and that the verifier refuses to read it"},
    {"stack -8 ... {scalar()}", "the eight bytes at r10 - 8, their value, and what the verifier knows of it"},
    {"> o x |", "the next instruction; a breakpoint; an instruction that the verifier refuses; the cursor"},
};

} // namespace

std::string help_screen_text(const ScreenOptions &options) {
    const auto width = static_cast<size_t>(std::max(options.columns, 20));
    const size_t left = std::min<size_t>(26, width / 2);
    std::vector<std::string> lines = {"Keys of rawbpf step", ""};
    for (const HelpRow &row : kRows) {
        std::string_view rest = row.what;
        std::string line = format("{:<{}}", row.keys, left);
        do {
            size_t end = std::min(rest.size(), width - left);
            if (end < rest.size())
                if (const size_t blank = rest.substr(0, end + 1).rfind(' '); blank != std::string_view::npos && blank > 0)
                    end = blank;
            line += rest.substr(0, end);
            rest.remove_prefix(end);
            while (rest.starts_with(' ')) rest.remove_prefix(1);
            lines.push_back(std::move(line));
            line = std::string(left, ' ');
        } while (!rest.empty());
    }
    const auto room = static_cast<size_t>(std::max(options.rows - 1, 1));
    const size_t from = std::min(options.from, lines.size() > room ? lines.size() - room : 0);
    std::string out;
    for (size_t n = from; n < std::min(from + room, lines.size()); ++n) append(out, "{}\n", render::cut(lines[n], width));
    return out + render::cut(lines.size() > room ? "PageDown, PageUp: more; any other key: back" : "any key: back", width);
}

} // namespace rawbpf::inline v0::exec
