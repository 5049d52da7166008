// `rawbpf step`: a program one instruction at a time, forwards and backwards, on a terminal; or all of it as text.

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/built.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/program_input.h"
#include "cli/running.h"
#include "programs/exec/knowledge.h"
#include "programs/exec/step_json.h"
#include "programs/exec/stepper.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/sys/terminal.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf step";

constexpr Option kOptions[] = {
    {.name = "trace", .help = "use no keys: print every instruction and what it changed", .section = "How"},
    format_option("text", "text json"),
    kJsonOption,
    {.name = "break",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "WHERE",
     .help =
         "a breakpoint: an instruction's number, FILE:LINE (or :LINE), or a function. With --trace, printing begins at the first "
         "one that is reached"},
    {.name = "watch",
     .kind = OptionKind::text,
     .repeatable = true,
     .argument = "REG",
     .help = "watch a register: running on stops where it changes. With --trace, only the steps that change one are printed"},
    {.name = "known",
     .help =
         "--trace: beside each register that changes, what the verifier knows of it, as in r0 = 5 {scalar(umax=9)}; at the end "
         "its verdict. On a terminal it is always shown, and the key v hides it"},
    {.name = "limit",
     .kind = OptionKind::count,
     .argument = "N",
     .help = "--trace: at most that many steps",
     .fallback = "100000",
     .least = 1},
    kMemoryOption,
    kMemoryFileOption,
    kPacketOption,
    kProgramOption,
    kBtfOption,
    kColorOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf step sum.bpf.o 01020304", "n: next, b: back, c: run on, ?: all keys, q: quit"},
    {"rawbpf step --break :12 sum.bpf.o 01020304", "then c runs to line 12"},
    {"rawbpf step --trace --known sum.bpf.o 01020304 | less", "all of it, with what the verifier knows"},
    {"rawbpf step --trace --watch r0 sum.bpf.o 01020304", "how r0 came to be what it is"},
    {"rawbpf step --json sum.bpf.o 01020304", "a JSON line a step, with the registers and bytes that it changed"},
};

/// A machine on which the program has been entered.
struct Stepping {
    ProgramInput input;
    std::unique_ptr<emulator::Machine> machine;
};
Result<Stepping> prepare(const Arguments &a) {
    Stepping out;
    out.input = TRY(program_input(a, program_input_ids(kOptions)));
    return out;
}
Result<void> enter(Stepping &s) {
    s.machine = TRY(exec::enter(s.input.spec, s.input.program, s.input.memory, s.input.packet));
    return {};
}

bool traces(const Arguments &a) { return a.has(option("trace")) || a.text(option("format")) == "json"; }

// The lines of --trace for people.
class TextSteps {
  public:
    TextSteps(exec::Stepper &stepper, bool known) : stepper_(stepper), known_(known) {}
    std::string step(const exec::NextStep &step) {
        std::string out;
        const emulator::Source &source = step.source;
        if (source.line && (source.line != last_.line || source.file != last_.file))
            out += printable_lines(format("; {}:{}  {}\n", source.file, source.line, source.text));
        last_ = source;
        const std::string text = format("{:{}}{:5}: {}", "", 2 * step.depth, step.insn, step.text);
        const std::string changes = exec::changes_text(stepper_, known_);
        out += changes.empty() ? text + "\n" : format("{:<50} ; {}\n", text, changes);
        if (const std::string printed = stepper_.printed(); !printed.empty()) out += printable_lines("> " + printed);
        return out;
    }
    std::string end() const {
        std::string out;
        const emulator::Machine &machine = stepper_.machine();
        if (known_ && stepper_.knowledge()) append(out, "verifier: {}\n", stepper_.knowledge()->verdict());
        if (machine.ended())
            append(out, "r0 = {} after {} steps\n", exec::value_text(machine, machine.cpu().r[0]), machine.executed());
        return out;
    }

  private:
    exec::Stepper &stepper_;
    bool known_;
    emulator::Source last_;
};

int trace(exec::Stepper &stepper, const Arguments &a) {
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();
    render::Writer &out = output->writer();
    const emulator::Machine &machine = stepper.machine();
    const uint64_t most = a.count(option("limit"));
    const bool known = a.has(option("known")), watching = !stepper.watched().empty();
    const bool json = a.text(option("format")) == "json";
    TextSteps text(stepper, known);
    std::string lines;
    if (json) append_json_header(lines, a);
    uint64_t steps = 0;
    if (a.has(option("break"))) steps = stepper.run_on(most);
    while (!machine.ended() && steps < most && stepper.fault().empty()) {
        const exec::NextStep next = exec::next_step(stepper);
        if (!stepper.forward()) break;
        ++steps;
        if (watching && !stepper.watched_changed()) continue;
        json ? exec::append_step_json(lines, stepper, next, known) : void(lines += text.step(next));
        out.write(lines);
        lines.clear();
    }
    json ? exec::append_end_json(lines, stepper, machine.executed(), known) : void(lines += text.end());
    out.write(lines);
    if (Result<void> written = out.flush(); !written)
        return reader_gone(written.error()) ? 0 : complain(kWho, written.error(), 1);
    if (!stepper.fault().empty()) return complain(kWho, make_error(Errc::bad_input, stepper.fault()), 1);
    if (!machine.ended())
        return complain(kWho, make_error(Errc::busy, format("stopped after {} steps", steps), "--limit N allows more"), 1);
    return 0;
}

enum Key : int { kUp = 1000, kDown, kLeft, kRight, kPageUp, kPageDown, kEscape, kNone };

/// What follows the ESC of a key that isn't a letter.
int escaped_key(sys::RawTerminal &terminal) {
    const int next = terminal.key_at_once();
    if (next == 0) return kEscape;
    if (next != '[') return kNone;
    const int last = terminal.key_at_once();
    switch (last) {
    case 'A': return kUp;
    case 'B': return kDown;
    case 'C': return kRight;
    case 'D': return kLeft;
    default: break;
    }
    if (last >= '0' && last <= '9' && terminal.key_at_once() == '~')
        return last == '5' ? kPageUp : last == '6' ? kPageDown : kNone;
    return kNone;
}

/// The screen, the keys, and what stands on the line for messages.
struct Interactive {
    exec::Stepper &stepper;
    sys::RawTerminal &terminal;
    exec::ScreenOptions options;
    sys::RawTerminal::Size size;
    bool help = false;

    void show(std::string_view text) const { (void)sys::write_all(terminal.fd(), text.data(), text.size()); }

    void draw() {
        size = terminal.size();
        options.rows = size.rows;
        options.columns = size.columns;
        const std::string text = help ? exec::help_screen_text(options) : exec::screen_text(stepper, options);
        std::string lines = "\033[H";
        for (const char c : text) c == '\n' ? lines += "\033[K\r\n" : lines += c;
        show(lines + "\033[K\033[J");
    }
    /// The next key; meanwhile the screen follows the terminal's size.
    int key() {
        for (;;) {
            const int key = terminal.key_or_resize(size);
            if (key == sys::RawTerminal::kResized) {
                draw();
                continue;
            }
            return key == 27 ? escaped_key(terminal) : key;
        }
    }
    /// A word, typed behind `what` on the line for messages. Empty: given up.
    std::string ask(std::string_view what) {
        constexpr size_t kMost = 20;
        std::string word;
        for (;;) {
            options.message = format("{}: {}_", what, word);
            draw();
            const int k = key();
            if (k == '\n' || k == '\r') break;
            if (k == 0 || k == kEscape) {
                word.clear();
                break;
            }
            if ((k == 127 || k == 8) && !word.empty()) word.pop_back();
            if (k > 32 && k < 127 && word.size() < kMost) word += static_cast<char>(k);
        }
        options.message.clear();
        return word;
    }
    void go_to();
    void watch();
    bool act(int key, bool &moved);
};

void Interactive::go_to() {
    const std::string word = ask("go to step");
    if (word.empty()) return;
    if (!is_number(word) || word.size() > 15) {
        options.message = format("{} isn't a number of steps", word);
        return;
    }
    const uint64_t wanted = std::stoull(word);
    if (stepper.go_to(wanted)) return;
    const uint64_t at = stepper.machine().executed();
    options.message = !stepper.fault().empty() ? std::string()
                      : at < wanted            ? format("the program ends after {} steps", at)
                                               : format("{} is the earliest step that is still recorded", at);
}

void Interactive::watch() {
    const std::string word = ask("watch register");
    if (word.empty()) return;
    if (const Result<void> set = stepper.watch(word); !set) options.message = set.error().message();
}

/// What a key does. False: quit.
bool Interactive::act(int key, bool &moved) {
    const emulator::Machine &machine = stepper.machine();
    moved = true;
    switch (key) {
    case 'n':
    case ' ':
    case '\n':
    case '\r':
    case kRight:
        if (!stepper.forward() && stepper.fault().empty())
            options.message = format("it has ended: r0 = {:#x}; b goes back", machine.cpu().r[0]);
        return true;
    case 'b':
    case kLeft:
        if (!stepper.back()) options.message = "this is the first step that is recorded";
        return true;
    case 'o': stepper.over(); return true;
    case 'l': stepper.next_line(); return true;
    case 'c':
        options.message = format("{} steps", stepper.run_on());
        if (machine.ended()) append(options.message, "; it has ended: r0 = {:#x}", machine.cpu().r[0]);
        return true;
    case 'C': options.message = format("{} steps back", stepper.run_back()); return true;
    case 'g': go_to(); return true;
    case 'h': (void)stepper.go_to(0); return true;
    default: break;
    }
    moved = false;
    switch (key) {
    case 't': stepper.toggle(options.cursor); break;
    case 'w': watch(); break;
    case 'm':
        options.panel = options.panel == exec::Panel::memory ? exec::Panel::maps
                        : options.panel == exec::Panel::maps ? exec::Panel::calls
                                                             : exec::Panel::memory;
        options.from = 0;
        break;
    case 'v':
        options.known = !options.known;
        if (!stepper.knowledge()) options.message = "nothing is known: this build has no verifier";
        break;
    case kPageDown: options.from += 8; break;
    case kPageUp: options.from -= std::min<size_t>(options.from, 8); break;
    case kUp:
    case 'k': options.cursor -= options.cursor > 0; break;
    case kDown:
    case 'j': options.cursor += options.cursor + 1 < machine.insns().size(); break;
    case '?': help = true; break;
    case 0: // the terminal has gone, or Ctrl-C
    case 'q': return false;
    default: options.message = "that key does nothing; ? shows those that do";
    }
    return true;
}

int interactive(exec::Stepper &stepper, const Arguments &a) {
    Result<sys::RawTerminal> terminal = sys::RawTerminal::open();
    if (!terminal)
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("there is no terminal here ({})", terminal.error().message()),
                                   "--trace and --json print every step"),
                        2);
    stop_on_signals(); // which end the waiting for a key, and the terminal is as it was before
    Interactive screen{stepper, *terminal, {}, {}};
    screen.options.color = color_wanted(a.text(option("color")), terminal->fd());
    screen.options.cursor = stepper.machine().pc();
    screen.show("\033[?1049h\033[?25l"); // the other screen, without a cursor
    while (!stop_wanted) {
        screen.draw();
        screen.options.message.clear();
        const int key = screen.key();
        if (screen.help) {
            const bool pages = key == kPageDown || key == kPageUp;
            if (pages) screen.options.from = key == kPageDown ? screen.options.from + 8 : 0;
            if (!pages) screen.help = false, screen.options.from = 0;
            if (key == 0) break;
            continue;
        }
        bool moved = false;
        if (!screen.act(key, moved)) break;
        if (moved) screen.options.cursor = stepper.machine().pc();
    }
    screen.show("\033[?25h\033[?1049l");
    return 0;
}

int run_step(const Arguments &a) {
    Result<Stepping> stepping = prepare(a);
    if (!stepping) return complain(kWho, stepping.error(), stepping.error().kind == Errc::invalid_argument ? 2 : 1);
    if (Result<void> entered = enter(*stepping); !entered) return complain(kWho, entered.error());
    exec::Stepper stepper(*stepping->machine, stepping->input.spec, stepping->input.labels);
    if constexpr (has(Part::verifier))
        if (!traces(a) || a.has(option("known")))
            stepper.set_knowledge(
                exec::knowledge_of(stepping->input.spec, stepping->input.program, stepping->input.verify_options()));
    if (a.has(option("known")) && !stepper.knowledge()) return complain(kWho, left_out(Part::verifier, "--known"));
    for (std::string_view what : a.all(option("watch")))
        if (Result<void> set = stepper.watch(what); !set) return complain(kWho, set.error(), 2);
    for (std::string_view where : a.all(option("break")))
        if (Result<void> set = stepper.break_at(where); !set) return complain(kWho, set.error(), 1);
    return traces(a) ? trace(stepper, a) : interactive(stepper, a);
}

} // namespace

const Command kStep{
    .name = "step",
    .summary = "step through a program, forwards and backwards",
    .description = "Runs a program in the emulator one instruction at a time and shows registers, stack, memory and code, with "
                   "what the last step changed and the source line. Beside each value, it shows what a verifier knows of it on "
                   "the path that this run took, and the verifier's verdict on the program (rawbpf verify). Steps can be undone, "
                   "maps and memory included; rawbpf remembers some 200,000 of them. Programs and memory are given as for rawbpf "
                   "exec. --json turns on --trace. The command needs no privileges.\n\n"
                   "Keys: n, space or right: next. b or left: back. o: step over a call. l: run to the next source line. c: run "
                   "on to a breakpoint, a change of a watched register, or the end, C: back to one or the beginning. g: go to a "
                   "step by its number. up, down and t: move a cursor and set or remove a breakpoint there. w: watch a register. "
                   "m: below the stack, the memory, the maps' contents or the calls; PageDown shows more. v: hide what the "
                   "verifier knows. h: home, the beginning. ?: help. q: quit. The screen follows the terminal's size.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "[FILE|-] [HEX]",
    .least_operands = 0,
    .most_operands = 2,
    .operand_is_file = true,
    .run = run_step,
};

} // namespace rawbpf::inline v0::cli
