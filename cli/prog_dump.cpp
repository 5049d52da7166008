// `rawbpf prog dump`: a loaded program's instructions, or its machine code. `rawbpf prog pin`: a path that keeps it.
#include <algorithm>

#include "asm/print.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/waiting.h"
#include "programs/inspect/instructions_json.h"
#include "programs/inspect/loaded_program.h"
#include "programs/inspect/machine_code.h"
#include "programs/render/text.h"
#include "programs/running/sampled.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/clock.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf prog dump";
constexpr uint64_t kLookNs = 100'000'000; // rings hold more than that time's samples

constexpr Option kOptions[] = {
    {.name = "translated",
     .help = "the instructions as the verifier left them; this is the default",
     .section = "What",
     .excludes = "what"},
    {.name = "machine", .help = "the machine code, as bytes", .excludes = "what"},
    {.name = "profile", .help = "sample where in the machine code the program spends its time", .excludes = "what"},
    {.name = "duration",
     .letter = 'd',
     .kind = OptionKind::seconds,
     .argument = "SECONDS",
     .help = "--profile: how long; Ctrl-C ends it earlier",
     .fallback = "5"},
    {.name = "freq",
     .letter = 'F',
     .kind = OptionKind::count,
     .argument = "HZ",
     .help = "--profile: samples per second on each CPU",
     .fallback = "4999",
     .least = 1},
    {.name = "source", .help = "with the lines of source that they come from", .section = "Output"},
    {.name = "bytes", .help = "--translated: numbers and bytes in front of the instructions"},
    {.name = "format",
     .letter = 'f',
     .kind = OptionKind::choice,
     .argument = "FORMAT",
     .help = "text; JSON lines (json); the bytes themselves for a disassembler (binary), not with --profile",
     .fallback = "text",
     .choices = "text binary json"},
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf prog dump on_exec --source", "what the kernel runs, with the lines of C"},
    {"sudo rawbpf prog dump xdp_main --profile -d 10", "which of its lines takes the time"},
    {"sudo rawbpf prog dump 42 --machine -f binary -o code.bin", "for objdump -D -b binary -m i386:x86-64"},
};
constexpr Option kPinOptions[] = {syscalls_option(false)};
constexpr Example kPinExamples[] = {{"sudo rawbpf prog pin on_exec /sys/fs/bpf/on_exec", "keep it when its loader ends"}};

std::string_view as_text(const std::vector<std::byte> &bytes) {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Result<std::string> profile(const Arguments &a, int program) {
    running::CodeSamples samples(TRY(inspect::machine_code(program)));
    const Waiting waiting = TRY(Waiting::open());
    running::AddressClock clock = TRY(running::AddressClock::open(a.count(option("freq"))));
    const uint64_t end = sys::monotonic_ns() + static_cast<uint64_t>(a.seconds(option("duration")) * 1e9);
    for (bool stopped = false; !stopped && sys::monotonic_ns() < end;) {
        stopped = TRY(waiting.stopped_before(std::min(end, sys::monotonic_ns() + kLookNs)));
        clock.read(samples);
    }
    std::string text;
    if (a.text(option("format")) == "json") {
        append_json_header(text, a);
        samples.append_json(text);
    } else {
        text = printable_lines(samples.text());
    }
    say(format("{}: {} of {} samples of the kernel were in the program, counted by the {}{}\n", kWho,
               render::grouped(samples.inside()), render::grouped(samples.inside() + samples.elsewhere()),
               clock.hardware() ? "CPU's cycles" : "kernel's clock",
               clock.lost() == 0 ? std::string() : format("; {} were lost", render::grouped(clock.lost()))));
    if (samples.inside() == 0)
        say(format("{}: no sample hit the program: it didn't run, or only for a short time{}\n", kWho,
                   clock.hardware() ? "" : "; without a hardware counter, code that runs with interrupts off gets no samples"));
    return text;
}

Result<std::string> answer(const Arguments &a) {
    const Fd program = TRY(find_object(sys::ObjectKind::program, std::string(a.operands()[0])));
    const bool binary = a.text(option("format")) == "binary", json = a.text(option("format")) == "json";
    if (a.has(option("profile"))) return profile(a, program.get());
    std::string header;
    if (json) append_json_header(header, a);
    if (a.has(option("machine"))) {
        const std::vector<inspect::MachineFunction> functions = TRY(inspect::machine_code(program.get()));
        if (json) return header + inspect::machine_json(functions);
        if (!binary) return inspect::machine_text(functions, a.has(option("source")));
        std::string out;
        for (const inspect::MachineFunction &function : functions) out += as_text(function.code);
        return out;
    }
    const Unit unit = TRY(inspect::loaded_program(TRY(sys::prog_info(program.get())).id));
    if (json) return header + inspect::instructions_json(unit);
    if (binary) {
        std::string out;
        for (const Function &function : unit.functions)
            out.append(reinterpret_cast<const char *>(function.insns.data()), function.insns.size() * sizeof(Insn));
        return out;
    }
    PrintStyle style;
    style.locations = a.has(option("source"));
    style.bytes = a.has(option("bytes"));
    return printable_lines(print(unit, style));
}

int run_dump(const Arguments &a) {
    if (a.has(option("profile")) && a.text(option("format")) == "binary")
        return complain(kWho, make_error(Errc::invalid_argument, "-f binary isn't for --profile", "it has -f text and -f json"),
                        2);
    const Result<std::string> text = answer(a);
    return text ? write_result(kWho, a.text(option("output")), *text) : complain(kWho, text.error());
}

int run_pin(const Arguments &a) {
    const auto pin = [&]() -> Result<void> {
        const Fd program = TRY(find_object(sys::ObjectKind::program, std::string(a.operands()[0])));
        TRY_IN(sys::obj_pin(program.get(), std::string(a.operands()[1])), "pinning it at {}", a.operands()[1]);
        return {};
    };
    const Result<void> done = pin();
    return done ? 0 : complain("rawbpf prog pin", done.error());
}

} // namespace

const Command kProgDump{
    .name = "prog dump",
    .summary = "show the instructions or the machine code of a loaded program",
    .description =
        "Shows what the kernel runs: the instructions of a loaded program as its verifier left them, with the names of maps, "
        "functions and helpers (as rawbpf disasm --id does), or with --machine the machine code of its JIT compiler, function "
        "by function. The program is given by its id, its name or a pin. -f binary writes the bytes unchanged.\n\n"
        "--profile samples the instruction pointer of each CPU for some seconds. It shows how many samples were in the program, "
        "by source line if the program has line information, otherwise by address in its machine code. Time in helper functions "
        "isn't counted; rawbpf top shows the time of whole runs. Without a hardware counter (in most virtual machines), code "
        "that runs with interrupts off gets no samples.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN",
    .least_operands = 1,
    .most_operands = 1,
    .operand_kind = "programs",
    .run = run_dump,
};

const Command kProgPin{
    .name = "prog pin",
    .summary = "give a program a path, which keeps it",
    .description = "Pins a loaded program at a path on a bpf file system: it stays loaded until the path is removed, even if no "
                   "process holds it. The program is given by its id, its name or the path of another pin.",
    .options = kPinOptions,
    .examples = kPinExamples,
    .operand = "PROGRAM PATH",
    .least_operands = 2,
    .most_operands = 2,
    .operand_kind = "programs",
    .run = run_pin,
};

} // namespace rawbpf::inline v0::cli
