// `rawbpf decode`: bytes of instructions, taken apart bit by bit.
#include "cli/bit_view.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "programs/exec/input.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf decode";

constexpr Example kExamples[] = {
    {"rawbpf decode 'b7 00 00 00 2a 00 00 00'", "r0 = 42, and what each of its bits means"},
    {"rawbpf decode b700000001000000 9500000000000000 --json", "two instructions, for a program"},
};

int run_decode(const Arguments &a) {
    std::string hex;
    for (const std::string_view operand : a.operands()) hex.append(operand) += ' ';
    Result<std::vector<Insn>> insns = exec::parse_insns(hex, "the bytes");
    if (!insns) return complain(kWho, insns.error(), 1);
    bool undefined = false;
    const int status = print_bits(kWho, *insns, a, undefined);
    return status != 0 ? status : undefined;
}

} // namespace

const Command kDecode{
    .name = "decode",
    .summary = "show what the bits of instructions mean",
    .description =
        "Takes instructions as hexadecimal digits, eight bytes each, as bpf(2) takes them on a little-endian machine. It "
        "shows each instruction as text, says what it does, and names each field below the bits that it has: class, "
        "operation, registers, offset, number (RFC 9669, section 3). The exit status is 1 where bytes are no instruction.",
    .options = kBitsOptions,
    .examples = kExamples,
    .operand = "HEX...",
    .least_operands = 1,
    .most_operands = 1000,
    .run = run_decode,
};

} // namespace rawbpf::inline v0::cli
