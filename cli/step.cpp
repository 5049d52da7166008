// `rawbpf step`: a program one instruction at a time, forwards and backwards, on a terminal; or all of it as text.

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/program_input.h"
#include "cli/running.h"
#include "programs/exec/walk.h"
#include "runtime/base/fail.h"
#include "runtime/sys/terminal.h"
#include "runtime/sys/uapi.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf step";

constexpr Option kOptions[] = {
    {.name = "trace", .help = "use no keys: print every instruction and what it changed", .section = "How"},
    {.name = "break",
     .kind = Kind::text,
     .repeatable = true,
     .argument = "WHERE",
     .help =
         "a breakpoint: an instruction's number, FILE:LINE (or :LINE), or a function. With --trace, printing begins at the first "
         "one that is reached"},
    {.name = "limit",
     .kind = Kind::count,
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
    {"rawbpf step sum.bpf.o 01020304", "n: next, b: back, c: run on, h: home, q: quit"},
    {"rawbpf step --break :12 sum.bpf.o 01020304", "then c runs to line 12"},
    {"rawbpf step --trace sum.bpf.o 01020304 | less", "all of it"},
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
    s.machine = TRY(emulator::Machine::create(s.input.spec, {.limit = 0, .stepping = true}));
    if (s.input.packet)
        TRY(s.machine->set_packet(s.input.memory, s.input.spec.programs[s.input.program].type == BPF_PROG_TYPE_XDP));
    else
        TRY(s.machine->set_memory(s.input.memory));
    return s.machine->enter(s.input.program);
}

int trace(exec::Walk &walk, const Arguments &a) {
    Result<Output> output = Output::open(a.text(option("output")));
    if (!output) return complain(kWho, output.error(), 1);
    if (Result<void> emptied = output->empty(); !emptied) return complain(kWho, emptied.error(), 1);
    output->keep();
    render::Writer &out = output->writer();
    const emulator::Machine &machine = walk.machine();
    const uint64_t most = a.count(option("limit"));
    uint64_t steps = 0;
    if (a.has(option("break"))) steps = walk.run_on(most);
    emulator::Source last;
    while (!machine.ended() && steps < most && walk.fault().empty()) {
        const emulator::Source source = emulator::source_of(walk.spec(), machine.program(), machine.pc());
        if (source.line && (source.line != last.line || source.file != last.file))
            out.write(printable_lines(format("; {}:{}  {}\n", source.file, source.line, source.text)));
        last = source;
        const std::string text =
            format("{:{}}{:5}: {}", "", 2 * machine.cpu().depth, machine.pc(), exec::instruction_text(walk, machine.pc()));
        if (!walk.forward()) break;
        ++steps;
        const std::string changes = exec::changes_text(walk);
        out.write(changes.empty() ? text + "\n" : format("{:<50} ; {}\n", text, changes));
        if (const std::string printed = walk.printed(); !printed.empty()) out.write(printable_lines("> " + printed));
    }
    if (machine.ended()) out.write(format("r0 = {:x} after {} steps\n", machine.cpu().r[0], machine.executed()));
    if (Result<void> written = out.flush(); !written)
        return reader_gone(written.error()) ? 0 : complain(kWho, written.error(), 1);
    if (!walk.fault().empty()) return complain(kWho, make_error(Errc::bad_input, walk.fault()), 1);
    if (!machine.ended())
        return complain(kWho, make_error(Errc::busy, format("stopped after {} steps", steps), "--limit N allows more"), 1);
    return 0;
}

enum Key : int { kUp = 1000, kDown, kLeft, kRight, kNone };
int read_key(sys::RawTerminal &terminal) {
    const int key = terminal.key();
    if (key != 27) return key;
    if (terminal.key_at_once() != '[') return kNone;
    switch (terminal.key_at_once()) {
    case 'A': return kUp;
    case 'B': return kDown;
    case 'C': return kRight;
    case 'D': return kLeft;
    default: return kNone;
    }
}

int interactive(exec::Walk &walk, const Arguments &a) {
    Result<sys::RawTerminal> terminal = sys::RawTerminal::open();
    if (!terminal)
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("there is no terminal here ({})", terminal.error().message()),
                                   "--trace prints every step"),
                        2);
    stop_on_signals(); // which end the waiting for a key, and the terminal is as it was before
    const bool color = color_wanted(a.text(option("color")), terminal->fd());
    auto show = [&](const std::string &text) { (void)sys::write_all(terminal->fd(), text.data(), text.size()); };
    show("\033[?1049h\033[?25l"); // the other screen, without a cursor
    const emulator::Machine &machine = walk.machine();
    size_t cursor = machine.pc();
    std::string message;
    for (bool quit = false; !quit && !stop_wanted;) {
        const sys::RawTerminal::Size size = terminal->size();
        std::string text = exec::screen_text(walk, {size.rows, size.columns, color, message, cursor});
        std::string lines = "\033[H";
        for (size_t at = 0; at < text.size(); ++at)
            lines += text[at] == '\n' ? std::string("\033[K\r\n") : std::string(1, text[at]);
        show(lines + "\033[K\033[J");
        message.clear();
        bool moved = true;
        switch (read_key(*terminal)) {
        case 'n':
        case ' ':
        case '\n':
        case '\r':
        case kRight:
            if (!walk.forward() && walk.fault().empty())
                message = format("it has ended: r0 = {:#x}; b goes back", machine.cpu().r[0]);
            break;
        case 'b':
        case kLeft:
            if (!walk.back()) message = "this is the beginning (or as far back as is remembered)";
            break;
        case 'o': walk.over(); break;
        case 'l': walk.next_line(); break;
        case 'c': message = format("{} steps", walk.run_on()); break;
        case 'C': message = format("{} steps back", walk.run_back()); break;
        case 'h':
            while (walk.back()) {
            }
            break;
        case 't':
            walk.toggle(cursor);
            moved = false;
            break;
        case kUp:
        case 'k':
            cursor -= cursor > 0;
            moved = false;
            break;
        case kDown:
        case 'j':
            cursor += cursor + 1 < machine.insns().size();
            moved = false;
            break;
        case 0: // the terminal has gone, or Ctrl-C
        case 'q': quit = true; break;
        default: moved = false; message = "n b o l c C t h q, and the arrows";
        }
        if (moved) cursor = machine.pc();
    }
    show("\033[?25h\033[?1049l");
    return 0;
}

int run_step(const Arguments &a) {
    Result<Stepping> stepping = prepare(a);
    if (!stepping) return complain(kWho, stepping.error(), stepping.error().kind == Errc::invalid_argument ? 2 : 1);
    if (Result<void> entered = enter(*stepping); !entered) return complain(kWho, entered.error());
    exec::Walk walk(*stepping->machine, stepping->input.spec, stepping->input.labels);
    for (std::string_view where : a.all(option("break")))
        if (Result<void> set = walk.break_at(where); !set) return complain(kWho, set.error(), 1);
    return a.has(option("trace")) ? trace(walk, a) : interactive(walk, a);
}

} // namespace

const Command kStep{
    .name = "step",
    .summary = "walk through a program, forwards and backwards",
    .description =
        "Runs a program in the emulator one instruction at a time and shows registers, stack, memory and code, with what the "
        "last step changed and the source line. Steps can be undone, maps and memory included; rawbpf remembers some 200,000 of "
        "them. Programs and memory are given as for rawbpf exec. The command needs no privileges.\n\n"
        "Keys: n, space or right: next. b or left: back. o: over a call. l: to another source line. c: run on to a breakpoint or "
        "the end, C: back to one or the beginning. up, down and t: move a cursor and set or remove a breakpoint there. h: home, "
        "the beginning. q: quit.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "[FILE|-] [HEX]",
    .least_operands = 0,
    .most_operands = 2,
    .operand_is_file = true,
    .run = run_step,
};

} // namespace rawbpf::inline v0::cli
