// `rawbpf encode`: one instruction, or some, as bytes, bit by bit.
#include "asm/assemble.h"
#include "asm/print.h"
#include "cli/bit_view.h"
#include "cli/commands.h"
#include "cli/console.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf encode";

constexpr Example kExamples[] = {
    {"rawbpf encode 'r1 += 5'", "its eight bytes, and what each of their bits means"},
    {"rawbpf encode 'if r1 s< 3 goto +2' --json", "the same for a program"},
    {"rawbpf encode 'r1 = 0x123456789a ll' exit", "several; the first one is wide, 16 bytes"},
};

int run_encode(const Arguments &a) {
    std::string text;
    for (const std::string_view operand : a.operands()) text.append(operand) += '\n';
    const Assembled assembled = assemble(text, {.name = "instruction"});
    if (!assembled) {
        say(assembled.report());
        return complain(kWho, make_error(Errc::bad_input, "that is no instruction", "rawbpf isa lists the instructions"), 1);
    }
    std::vector<Insn> insns;
    std::string why;
    if (!flatten(assembled.unit, insns, why)) return complain(kWho, make_error(Errc::bad_input, why, ""), 1);
    bool undefined = false;
    return print_bits(kWho, insns, a, undefined);
}

} // namespace

const Command kEncode{
    .name = "encode",
    .summary = "show the bits of an instruction",
    .description =
        "Assembles an instruction, or several, and shows what its bytes are and what each of their bits means: the first "
        "byte's class, operation and source, the registers, the offset and the number. `rawbpf asm` assembles whole "
        "programs; `rawbpf decode` goes the other way.",
    .options = kBitsOptions,
    .examples = kExamples,
    .operand = "INSTRUCTION...",
    .least_operands = 1,
    .most_operands = 1000,
    .run = run_encode,
};

} // namespace rawbpf::inline v0::cli
