// One screen of `rawbpf step`.
//
//      count: instruction 7, step 41, frame 0                       counter.c:12
//      | *slot += all;
//      verifier  accepted
//      registers, each with what the verifier knows of it; what changed is marked with * (and bold)
//      stack     a row for each slot of this frame that holds something: its bytes, what they are, what is known of them
//      memory    its first rows; or the maps' contents, or the functions that have been called
//      watch     watched registers: where they changed last
//      code      around the next instruction: > next, o breakpoint, | cursor, x what the verifier refuses
//      message, in as many lines as it needs
//      keys
//
// Rows are given out from both ends: place and keys always have theirs, then the code its least, then the others. The screen is
// plain text: the same steps give the same screen, so that tests can read it.
#include <algorithm>
#include <string>
#include <vector>

#include "programs/exec/contents.h"
#include "programs/exec/stepper.h"
#include "programs/render/text.h"
#include "runtime/base/format.h"
#include "runtime/base/hex.h"

namespace rawbpf::inline v0::exec {

namespace {

constexpr size_t kMostMessage = 6; // lines
constexpr std::string_view kKeys = "n next  b back  o over  l line  c run on  C run back  g go to step  t breakpoint  w watch  "
                                   "m memory/maps/calls  v knows  up/down  h home  ? help  q quit";
constexpr std::string_view kFewKeys = "n next  b back  c run on  ? help  q quit";
constexpr int kLeastCode = 3, kAllRegisters = 11;

// What the object has in it is anybody's: a tab or a line's end is one blank, of what a terminal would obey nothing is left.
std::string printable(std::string text) {
    std::replace(text.begin(), text.end(), '\t', ' ');
    std::replace(text.begin(), text.end(), '\n', ' ');
    return render::printable(text);
}

class Screen {
  public:
    explicit Screen(const ScreenOptions &options) : options_(options) {}
    void line(std::string_view text) {
        if (used_ >= options_.rows - kept_) return;
        if (used_++) out_ += '\n';
        out_ += cut(text);
        if (options_.color) out_ += "\033[0m\033[K";
    }
    [[nodiscard]] int left() const { return std::max(0, options_.rows - kept_ - used_); }
    /// So many rows at the end are for others.
    void leave(int rows) { kept_ = rows; }
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
    int used_ = 0, kept_ = 0;
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

// Sixteen bytes a row; at most `most` rows, from row `from` on.
void append_rows(std::vector<std::string> &out, const Screen &screen, const Stepper &stepper, std::string_view title,
                 const uint8_t *bytes, uint64_t size, uint64_t address) {
    for (uint64_t at = 0; at < size; at += 16) {
        std::string text = format("{:7} {:+5} ", at ? "" : title, static_cast<int64_t>(at));
        for (uint64_t n = at; n < std::min(at + 16, size); ++n) {
            const std::string byte = format("{:02x}", bytes[n]);
            append(text, "{}{}", n % 8 ? " " : "  ", changed_byte(stepper, address + n) ? screen.mark(byte) : byte);
        }
        out.push_back(std::move(text));
    }
}

std::vector<std::string> memory_panel(const Screen &screen, const Stepper &stepper) {
    std::vector<std::string> out;
    for (const MemoryView &view : memory_views(stepper))
        append_rows(out, screen, stepper, view.name, view.bytes.data(), view.bytes.size(), view.address);
    if (out.empty()) out.emplace_back("memory  none was given");
    return out;
}

std::vector<std::string> maps_panel(const Screen &screen, const Stepper &stepper) {
    std::vector<std::string> out;
    for (const MapView &map : map_views(stepper)) {
        out.push_back(format("map {}: {}", printable(map.name), map.summary));
        for (const MapEntry &entry : map.entries) {
            if (entry.key.empty()) {
                out.push_back(format("    {}", some_bytes(entry.value)));
                continue;
            }
            const std::string text = format("  {} [{}] = {}", entry.changed ? "*" : " ", entry.key, some_bytes(entry.value));
            out.push_back(entry.changed ? screen.mark(text) : text);
        }
    }
    if (out.empty()) out.emplace_back("maps    none");
    return out;
}

std::vector<std::string> calls_panel(const Stepper &stepper) {
    const emulator::Machine &machine = stepper.machine();
    const emulator::Cpu &cpu = machine.cpu();
    std::vector<std::string> out;
    for (uint32_t n = cpu.depth + 1; n-- > 0;) {
        const ProgramSpec &program = stepper.spec().programs[cpu.frames[n].program];
        const size_t place = n == cpu.depth ? machine.pc() : machine.return_place(n);
        const emulator::Source source = emulator::source_of(stepper.spec(), program, place);
        std::string text =
            format("{:7} frame {}  {}: {} instruction {}", n == cpu.depth ? "calls" : "", n,
                   printable(std::string(emulator::function_of(program, place))), n == cpu.depth ? "at" : "returns to", place);
        if (source.line) append(text, "   {}:{}", printable(source.file), source.line);
        if (cpu.frames[n].callback != emulator::Callback::none)
            append(text, "   (callback, call {})", uint64_t{cpu.frames[n].place});
        out.push_back(std::move(text));
    }
    return out;
}

std::vector<std::string> stack_rows(const Screen &screen, const Stepper &stepper, Knowledge *knowledge) {
    std::vector<std::string> out;
    for (const StackSlot &slot : stack_slots(stepper, knowledge)) {
        std::string text;
        for (size_t n = 0; n < slot.bytes.size(); ++n) {
            const std::string byte = hex_text(std::string_view(slot.bytes).substr(n, 1));
            append(text, " {}", slot.changed >> n & 1 ? screen.mark(byte) : byte);
        }
        std::string row = format("{:7} {:5} {}   {}", out.empty() ? "stack" : "", slot.offset, text, printable(slot.value));
        if (!slot.known.empty()) append(row, "   {{{}}}", slot.known);
        out.push_back(std::move(row));
    }
    if (out.empty()) out.emplace_back("stack   all zero");
    return out;
}

} // namespace

namespace {

// A register with its value, and what is known of it.
std::string register_cell(const Screen &screen, const Stepper &stepper, unsigned reg, int width, Knowledge *knowledge) {
    const bool changed = changed_register(stepper, static_cast<int>(reg));
    const std::string value = value_text(stepper.machine(), stepper.machine().cpu().r[reg]);
    const std::string cell = format("{}r{:<2} {:<{}}", changed ? "*" : " ", reg, value, std::max(0, width - 5));
    std::string out = changed ? screen.mark(cell) : cell;
    if (!knowledge) return out;
    const std::string known = knowledge->of_register(reg);
    return out + " " + (known.empty() ? std::string("-") : known);
}

// Of the registers that an instruction reads: "r1 ctx(), r3 scalar(umax=9)".
std::string operands_known(const Stepper &stepper, Knowledge &knowledge) {
    const Insn &insn = stepper.machine().insns()[stepper.machine().pc()];
    std::string out;
    for (const unsigned reg : {unsigned(insn.dst), unsigned(insn.src)}) {
        if (reg > 10 || (reg == insn.src && insn.src == insn.dst && !out.empty())) continue;
        if (const std::string text = knowledge.of_register(reg); !text.empty())
            append(out, "{}r{} {}", out.empty() ? "" : ", ", reg, text);
    }
    return out;
}

void show_registers(Screen &screen, const Stepper &stepper, const ScreenOptions &options, Knowledge *knowledge) {
    constexpr int kCell = 35;
    const bool each = knowledge && options.rows >= 30;
    if (each || (options.columns < 2 * kCell && options.rows >= 30)) {
        for (unsigned reg = 0; reg < kAllRegisters; ++reg)
            screen.line(register_cell(screen, stepper, reg, kCell, each ? knowledge : nullptr));
        return;
    }
    for (unsigned row = 0; row < 6; ++row)
        screen.line(register_cell(screen, stepper, row, kCell, nullptr) +
                    (row < 5 ? register_cell(screen, stepper, row + 6, kCell, nullptr) : ""));
    if (knowledge && !stepper.machine().ended()) screen.line(format("known   {}", operands_known(stepper, *knowledge)));
}

void show_code(Screen &screen, const Stepper &stepper, const ScreenOptions &options) {
    const emulator::Machine &machine = stepper.machine();
    const size_t count = machine.insns().size(), pc = machine.pc();
    const auto height = static_cast<size_t>(screen.left());
    const int64_t refused = stepper.knowledge() ? stepper.knowledge()->refused_at() : -1;
    size_t top = options.cursor > height / 2 ? options.cursor - height / 2 : 0;
    if (count > height) top = std::min(top, count - height);
    for (size_t n = top, shown = 0; n < count && shown < height; ++n) {
        if (n > 0 && is_wide(machine.insns()[n - 1]) && machine.insns()[n].code == 0) continue; // the second half
        const std::string text = format("{}{}{} {:5}  {}", n == options.cursor ? "|" : " ", n == pc ? ">" : " ",
                                        stepper.breaks(n)                    ? "o"
                                        : static_cast<int64_t>(n) == refused ? "x"
                                                                             : " ",
                                        n, printable(instruction_text(stepper, n)));
        screen.line(n == pc ? screen.mark(text) : text);
        ++shown;
    }
}

void show_watched(Screen &screen, const Stepper &stepper) {
    const emulator::Machine &machine = stepper.machine();
    for (const Watched &watched : stepper.watched()) {
        std::string text = format("watch   r{} = {}", watched.reg, value_text(machine, machine.cpu().r[watched.reg]));
        if (watched.changed)
            append(text, ", since step {} (instruction {}); before: {}", watched.step, watched.insn,
                   value_text(machine, watched.before));
        screen.line(text);
    }
}

// As many of the rows as may be shown, from one on; what isn't shown is said.
void show_some(Screen &screen, const std::vector<std::string> &rows, int most, size_t from = 0) {
    const size_t room = static_cast<size_t>(std::max(most, 1));
    from = std::min(from, rows.size() > room ? rows.size() - room : 0);
    const size_t shown = rows.size() - from > room ? room - 1 : rows.size() - from;
    for (size_t n = from; n < from + shown; ++n) screen.line(rows[n]);
    if (from + shown < rows.size()) screen.line(format("        ... {} more (PageDown)", rows.size() - from - shown));
}

std::string message_of(const Stepper &stepper, const ScreenOptions &options) {
    const emulator::Machine &machine = stepper.machine();
    if (!stepper.fault().empty()) return format("fault: {}", stepper.fault());
    if (!options.message.empty()) return options.message;
    if (const std::string printed = stepper.printed(); !printed.empty())
        return format("printed: {}", printed.substr(0, printed.find('\n')));
    return machine.ended() ? format("ended: r0 = {:#x}", machine.cpu().r[0]) : changes_text(stepper);
}

} // namespace

std::string screen_text(const Stepper &stepper, const ScreenOptions &options) {
    const emulator::Machine &machine = stepper.machine();
    const emulator::Cpu &cpu = machine.cpu();
    const size_t pc = machine.pc();
    Knowledge *knowledge = options.known ? stepper.knowledge() : nullptr;

    // From the end.
    std::vector<std::string> said =
        in_lines(printable(message_of(stepper, options)), options.columns, options.rows < 20 ? 2 : kMostMessage);
    if (said.empty()) said.emplace_back();
    std::vector<std::string> keys = in_lines(kKeys, options.columns, kMostMessage);
    if (static_cast<int>(keys.size()) * 6 > options.rows) keys = in_lines(kFewKeys, options.columns, 1);
    Screen screen(options);
    const int end = static_cast<int>(said.size() + keys.size()) + (options.rows >= 20 ? 1 : 0);
    screen.leave(std::min(end, options.rows));

    const emulator::Source source = emulator::source_of(stepper.spec(), machine.program(), pc);
    std::string place = format("{}: instruction {}, step {}, frame {}{}", emulator::function_of(machine.program(), pc), pc,
                               machine.executed(), cpu.depth, machine.ended() ? ", ended" : "");
    if (source.line) append(place, "   {}:{}", printable(std::string(source.file)), source.line);
    screen.line(place);
    screen.line(source.text.empty() ? "" : screen.dim(format("| {}", printable(std::string(source.text)))));
    if (knowledge) {
        const std::string why_not = machine.ended() ? std::string() : knowledge->why_not();
        std::vector<std::string> verdict =
            in_lines(printable(format("verifier  {}{}", knowledge->verdict(),
                                      why_not.empty() ? "" : format("   known here: {}", why_not))),
                     options.columns, options.rows < 20 ? 1 : 2);
        for (const std::string &line : verdict) screen.line(line);
        if (!why_not.empty()) knowledge = nullptr;
    }
    if (screen.left() >= 6 + 2) show_registers(screen, stepper, options, knowledge);
    const std::vector<std::string> stack = stack_rows(screen, stepper, knowledge);
    const std::vector<std::string> panel = options.panel == Panel::memory ? memory_panel(screen, stepper)
                                           : options.panel == Panel::maps ? maps_panel(screen, stepper)
                                                                          : calls_panel(stepper);
    const int spare = screen.left() - kLeastCode - 2 - static_cast<int>(stepper.watched().size());
    if (spare >= 2) {
        screen.line("");
        const int stack_most = std::clamp(spare / 4, 1, 8);
        show_some(screen, stack, stack_most);
        show_some(screen, panel, std::clamp(spare / (options.panel == Panel::memory ? 4 : 2), 1, 24), options.from);
    }
    show_watched(screen, stepper);
    if (spare >= 2) screen.line("");
    show_code(screen, stepper, options);
    while (screen.left() > 0) screen.line("");

    screen.leave(0);
    if (options.rows >= 20) screen.line("");
    for (const std::string &line : said) screen.line(screen.mark(line));
    for (const std::string &line : keys) screen.line(screen.dim(line));
    return screen.take();
}

} // namespace rawbpf::inline v0::exec
