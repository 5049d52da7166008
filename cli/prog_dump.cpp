// `rawbpf prog dump`: a loaded program's instructions, or its machine code. `rawbpf prog pin`: a path that keeps it.
#include "asm/print.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/inspect/loaded_program.h"
#include "programs/inspect/machine_code.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf prog dump";

constexpr Option kOptions[] = {
    {.name = "translated",
     .help = "the instructions as the verifier left them; this is the default",
     .section = "What",
     .excludes = "what"},
    {.name = "machine", .help = "the machine code, as bytes", .excludes = "what"},
    {.name = "source", .help = "with the lines of source that they come from", .section = "Output"},
    {.name = "bytes", .help = "--translated: numbers and bytes in front of the instructions"},
    {.name = "format",
     .letter = 'f',
     .kind = Kind::choice,
     .argument = "FORMAT",
     .help = "text, or the bytes themselves for a disassembler (binary)",
     .fallback = "text",
     .choices = "text binary"},
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf prog dump on_exec --source", "what the kernel runs, with the lines of C"},
    {"sudo rawbpf prog dump 42 --machine -f binary -o code.bin", "for objdump -D -b binary -m i386:x86-64"},
};
constexpr Option kPinOptions[] = {syscalls_option(false)};
constexpr Example kPinExamples[] = {{"sudo rawbpf prog pin on_exec /sys/fs/bpf/on_exec", "keep it when its loader ends"}};

std::string_view as_text(const std::vector<std::byte> &bytes) {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Result<std::string> answer(const Arguments &a) {
    const Fd program = TRY(find_object(sys::ObjectKind::program, std::string(a.operands()[0])));
    const bool binary = a.text(option("format")) == "binary";
    if (a.has(option("machine"))) {
        const std::vector<inspect::MachineFunction> functions = TRY(inspect::machine_code(program.get()));
        if (!binary) return inspect::machine_text(functions, a.has(option("source")));
        std::string out;
        for (const inspect::MachineFunction &function : functions) out += as_text(function.code);
        return out;
    }
    const Unit unit = TRY(inspect::loaded_program(TRY(sys::prog_info(program.get())).id));
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
    .description = "Shows what the kernel runs: the instructions of a loaded program as its verifier left them, with the names "
                   "of maps, functions and helpers "
                   "(as rawbpf disasm --prog does), or with --machine the bytes that its compiler made, function by function. An "
                   "id, a name or a pin says which. "
                   "With -f binary they are written as they are.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_dump,
};

const Command kProgPin{
    .name = "prog pin",
    .summary = "give a program a path, which keeps it",
    .description =
        "Pins a loaded program at a path on a bpf file system: it stays until the path is removed, though nobody holds it. "
        "An id, a name or the path of another pin says which program.",
    .options = kPinOptions,
    .examples = kPinExamples,
    .operand = "PROGRAM PATH",
    .least_operands = 2,
    .most_operands = 2,
    .run = run_pin,
};

} // namespace rawbpf::inline v0::cli
