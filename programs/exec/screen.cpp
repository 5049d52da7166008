// One screen of `rawbpf step`.
//
//      count: instruction 7, step 41, frame 0                       counter.c:12
//      | *slot += all;
//      registers, two columns; what changed is marked with * (and bold)
//      stack     rows of 16 bytes of this frame that aren't zero
//      memory    its first rows
//      code      around the next instruction: > next, o breakpoint, | cursor
//      message, in as many lines as it needs
//      keys
//
// The screen is plain text: the same steps give the same screen, so that tests can read it.
#include <algorithm>
#include <cstring>

#include "programs/exec/walk.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::exec {

namespace {

constexpr size_t kMostMessage = 6; // lines
constexpr std::string_view kKeys =
    "n next  b back  o over calls  l line  c run on  C run back  t breakpoint at |  up/down move |  h home  q quit";

class Screen {
  public:
    explicit Screen(const ScreenOptions &options) : options_(options) {}
    void line(std::string_view text) {
        if (used_ >= options_.rows) return;
        if (used_++) out_ += '\n';
        out_ += cut(text);
        if (options_.color) out_ += "\033[0m\033[K";
    }
    [[nodiscard]] int left() const { return options_.rows - used_; }
    [[nodiscard]] std::string mark(std::string_view text) const {
        return options_.color ? format("\033[1;33m{}\033[0m", text) : std::string(text);
    }
    [[nodiscard]] std::string dim(std::string_view text) const {
        return options_.color ? format("\033[2m{}\033[0m", text) : std::string(text);
    }
    std::string take() { return std::move(out_); }

  private:
    /// As much as fits in a row; sequences for colours have no width.
    [[nodiscard]] std::string cut(std::string_view text) const {
        int width = 0;
        for (size_t at = 0; at < text.size(); ++at) {
            if (text[at] == '\033') {
                at = std::min(text.find('m', at), text.size() - 1);
                continue;
            }
            if (++width > options_.columns) return std::string(text.substr(0, at));
        }
        return std::string(text);
    }
    const ScreenOptions &options_;
    std::string out_;
    int used_ = 0;
};

/// Words in lines of so many columns; what is longer than a line by itself is cut there. At most `most` lines.
std::vector<std::string> in_lines(std::string_view text, int columns, size_t most) {
    const auto width = static_cast<size_t>(std::max(columns, 1));
    std::vector<std::string> out;
    while (!text.empty() && out.size() < most) {
        size_t end = std::min(text.size(), width);
        if (const size_t line = text.substr(0, end).find('\n'); line != std::string_view::npos)
            end = line;
        else if (end < text.size() && text[end] != ' ')
            if (const size_t blank = text.substr(0, end).rfind(' '); blank != std::string_view::npos && blank > 0) end = blank;
        out.emplace_back(text.substr(0, end));
        text.remove_prefix(end);
        while (!text.empty() && (text[0] == ' ' || text[0] == '\n')) text.remove_prefix(1);
    }
    if (!text.empty() && !out.empty()) out.back() += "...";
    return out;
}

bool changed_register(const Walk &walk, int reg) {
    for (const StepChange &change : walk.changes())
        if (change.reg == reg) return true;
    return false;
}
bool changed_byte(const Walk &walk, uint64_t address) {
    for (const StepChange &change : walk.changes())
        if (change.reg < 0 && address >= change.address && address < change.address + change.after.size()) return true;
    return false;
}

void rows(Screen &screen, const Walk &walk, std::string_view title, const uint8_t *bytes, uint64_t size, uint64_t address,
          int most, bool all, int64_t base) {
    bool first = true;
    for (uint64_t at = 0; at < size && most > 0; at += 16) {
        const uint64_t end = std::min(at + 16, size);
        bool shown = all;
        for (uint64_t n = at; n < end; ++n) shown |= bytes[n] != 0 || changed_byte(walk, address + n);
        if (!shown) continue;
        std::string text = format("{:7} {:+5} ", first ? title : "", static_cast<int64_t>(at) + base);
        for (uint64_t n = at; n < end; ++n) {
            const std::string byte = format("{:02x}", bytes[n]);
            append(text, "{}{}", n % 8 ? " " : "  ", changed_byte(walk, address + n) ? screen.mark(byte) : byte);
        }
        screen.line(text);
        first = false;
        --most;
    }
    if (first) screen.line(format("{:7} all zero", title));
}

} // namespace

// What the object has in it is anybody's: a tab is one blank, of what a terminal would obey nothing is left.
static std::string printable(std::string text) {
    std::replace(text.begin(), text.end(), '\t', ' ');
    return render::printable(text);
}

std::string screen_text(const Walk &walk, const ScreenOptions &options) {
    const emulator::Machine &machine = walk.machine();
    const emulator::Cpu &cpu = machine.cpu();
    const size_t pc = machine.pc();
    Screen screen(options);
    const emulator::Source source = emulator::source_of(walk.spec(), machine.program(), pc);
    std::string place = format("{}: instruction {}, step {}, frame {}{}", emulator::function_of(machine.program(), pc), pc,
                               machine.executed(), cpu.depth, machine.ended() ? ", ended" : "");
    if (source.line) append(place, "   {}:{}", printable(std::string(source.file)), source.line);
    screen.line(place);
    screen.line(source.text.empty() ? "" : screen.dim(format("| {}", printable(std::string(source.text)))));

    for (int row = 0; row < 6; ++row) {
        std::string text;
        for (int reg : {row, row + 6}) {
            if (reg > 10) continue;
            const std::string value = value_text(machine, cpu.r[reg]);
            const bool changed = changed_register(walk, reg);
            const std::string cell = format("{}r{:<2} {:<31}", changed ? "*" : " ", reg, value);
            text += changed ? screen.mark(cell) : cell;
        }
        screen.line(text);
    }
    screen.line("");
    const int room = std::max(2, (options.rows - 18) / 2);
    const uint64_t frame = emulator::frame_address(cpu.depth);
    rows(screen, walk, "stack", machine.memory().frame(cpu.depth), emulator::kFrameBytes, frame, std::min(room, 8), false,
         -int64_t{emulator::kFrameBytes});
    for (const emulator::Object &object : machine.memory().objects())
        if (object.name == "memory" || object.name == "the packet")
            rows(screen, walk, object.name == "memory" ? "memory" : "packet", object.bytes, object.size, object.address,
                 std::min(room, 6), true, 0);
    screen.line("");

    std::string message = !walk.fault().empty()      ? format("fault: {}", walk.fault())
                          : !options.message.empty() ? options.message
                          : machine.ended()          ? format("ended: r0 = {:#x}", cpu.r[0])
                                                     : changes_text(walk);
    if (const std::string printed = walk.printed(); !printed.empty())
        message = format("printed: {}", printed.substr(0, printed.find('\n')));
    std::vector<std::string> said = in_lines(message, options.columns, kMostMessage);
    if (said.empty()) said.emplace_back();
    const std::vector<std::string> keys = in_lines(kKeys, options.columns, kMostMessage);

    const size_t count = machine.insns().size();
    const int height = std::max(3, screen.left() - 1 - static_cast<int>(said.size() + keys.size()));
    size_t top = options.cursor > static_cast<size_t>(height / 2) ? options.cursor - static_cast<size_t>(height / 2) : 0;
    if (count > static_cast<size_t>(height)) top = std::min(top, count - static_cast<size_t>(height));
    for (size_t n = top, shown = 0; n < count && shown < static_cast<size_t>(height); ++n) {
        if (n > 0 && is_wide(machine.insns()[n - 1]) && machine.insns()[n].code == 0) continue; // the second half
        const std::string text = format("{}{}{} {:5}  {}", n == options.cursor ? "|" : " ", n == pc ? ">" : " ",
                                        walk.breaks(n) ? "o" : " ", n, printable(instruction_text(walk, n)));
        screen.line(n == pc ? screen.mark(text) : text);
        ++shown;
    }
    screen.line("");
    for (const std::string &line : said) screen.line(screen.mark(line));
    for (const std::string &line : keys) screen.line(screen.dim(line));
    return screen.take();
}

} // namespace rawbpf::inline v0::exec
