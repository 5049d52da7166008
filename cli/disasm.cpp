// `rawbpf disasm`: the instructions of an object, a loaded program, hexadecimal digits or assembly text, as text.
#include "asm/print.h"
#include "cli/asm_file.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/inspect/instructions_json.h"
#include "programs/inspect/loaded_program.h"
#include "runtime/base/fail.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf disasm";

constexpr Option kOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    {.name = "dialect",
     .kind = OptionKind::choice,
     .argument = "NAME",
     .help = "the syntax: LLVM's, which rawbpf asm assembles to the same bytes; that of the verifier and bpftool; or the "
             "conformance suite's",
     .fallback = "llvm",
     .choices = "llvm kernel conformance"},
    {.name = "source", .help = "the lines of C that the instructions come from, as comments"},
    {.name = "bytes", .help = "numbers and bytes in front of the instructions"},
    {.name = "hex", .help = "llvm: numbers in hexadecimal, as llvm-objdump has them", .only_with = "dialect=llvm"},
    {.name = "cfg",
     .kind = OptionKind::choice,
     .argument = "FORMAT",
     .help = "the graph of basic blocks, for Graphviz",
     .choices = "dot"},
    kOutputOption,
    {.name = "id",
     .kind = OptionKind::count,
     .argument = "ID",
     .help = "show a loaded program, by its id, instead of a file",
     .section = "Input",
     .was = "prog",
     .least = 1,
     .most = UINT32_MAX},
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf disasm prog.bpf.o --source", "every program of an object, with the lines of C"},
    {"sudo rawbpf disasm --id 42 --dialect kernel", "a loaded program as the kernel runs it"},
    {"rawbpf disasm --json prog.bpf.o", "a JSON line an instruction, with its bytes, text and line of C"},
    {"rawbpf disasm --cfg dot prog.bpf.o | dot -Tsvg > prog.svg", "its control flow as a picture"},
    {"echo b7 00 00 00 05 00 00 00 95 00 00 00 00 00 00 00 | rawbpf disasm -", "a few bytes"},
};

Result<Unit> input(const Arguments &a) {
    if (a.has(option("id"))) return inspect::loaded_program(static_cast<uint32_t>(a.count(option("id"))));
    const InputFile file = TRY(InputFile::open(a.operands()[0]));
    return open_unit(file);
}

int run_disasm(const Arguments &a) {
    if (a.has(option("id")) == !a.operands().empty())
        return complain(kWho, make_error(Errc::invalid_argument, "either a file or --id ID, one of them", ""), 2);
    const bool json = a.text(option("format")) == "json";
    if (json && a.has(option("cfg")))
        return complain(kWho, make_error(Errc::invalid_argument, "--cfg dot isn't JSON: give one of them", ""), 2);
    Result<Unit> unit = input(a);
    if (!unit) return complain(kWho, unit.error());
    PrintStyle style;
    const std::string_view dialect = a.text(option("dialect"));
    style.dialect = dialect == "kernel" ? Dialect::kernel : dialect == "conformance" ? Dialect::conformance : Dialect::llvm;
    style.locations = a.has(option("source"));
    style.bytes = a.has(option("bytes"));
    style.hex = a.has(option("hex"));
    if (json) {
        std::string text;
        append_json_header(text, a);
        return write_result(kWho, a.text(option("output")), text + inspect::instructions_json(*unit, style));
    }
    // Comments have lines of the source and the file's name in them; names and strings of the text itself are ASCII.
    return write_result(kWho, a.text(option("output")),
                        printable_lines(a.has(option("cfg")) ? print_graph(*unit, style) : print(*unit, style)));
}

} // namespace

const Command kDisasm{
    .name = "disasm",
    .summary = "show a BPF program's instructions",
    .description =
        "Prints the instructions of an object file, of assembly text, of hexadecimal digits or, with --id, of a loaded "
        "program. It shows the names of maps, variables, functions, helpers and kernel functions; comments show what CO-RE will "
        "change.\n\n"
        "rawbpf asm assembles the output in LLVM's dialect to the same bytes. Bytes that the assembler would refuse (no "
        "instruction, or one that writes r10 or shifts too far) are printed as .8byte, with their meaning as a comment.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 0,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_disasm,
};

} // namespace rawbpf::inline v0::cli
