// `rawbpf asm`: text into an object file, bytes, or a listing.
#include <cstring>
#include <utility>
#include <vector>

#include "asm/bits.h"
#include "asm/print.h"
#include "cli/asm_file.h"
#include "cli/built.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/verify_input.h"
#include "programs/inspect/instructions_json.h"
#include "runtime/base/fail.h"
#include "runtime/object/unit_elf.h"
#include "runtime/object/unit_object.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf asm";

constexpr Option kOptions[] = {
    file_output_option("write an object to this file; with --hex, --raw or --json, what these show"),
    {.name = "hex",
     .help = "the instructions as hexadecimal digits on one line, as `rawbpf exec -` takes them",
     .excludes = "shape"},
    {.name = "raw", .help = "the instructions as bytes", .excludes = "shape"},
    {.name = "json",
     .help = "the listing as JSON lines, one for each instruction, as rawbpf disasm --json prints them",
     .excludes = "shape"},
    {.name = "btf",
     .letter = 'b',
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "a kernel's types, for @struct.member and kernel functions, instead of the running kernel's"},
    {.name = "verify",
     .help =
         "tell on standard error whether the kernel's verifier would accept the programs, as rawbpf verify does. If it refuses "
         "one, nothing is written and the status is 1"},
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf asm prog.asm", "assemble it, and show the instructions of each line"},
    {"rawbpf asm prog.asm -o prog.o", "an object for rawbpf load, bpftool or libbpf"},
    {"rawbpf asm --verify prog.asm -o prog.o", "only if the verifier would accept it"},
    {"rawbpf asm prog.asm --hex | rawbpf exec -", "run it"},
};

Result<std::string> bytes_of_unit(const Unit &unit, bool hex) {
    std::vector<Insn> insns;
    std::string why;
    if (!flatten(unit, insns, why))
        return Unexpected(
            make_error(Errc::invalid_argument, format("{}: {}", unit.name, why), "-o FILE makes an object, which can be loaded"));
    if (hex) return hex_of(insns) + "\n";
    std::string raw(insns.size() * sizeof(Insn), '\0');
    std::memcpy(raw.data(), insns.data(), raw.size());
    return raw;
}

Result<std::string> object_of_unit(const Unit &unit, const std::string &btf) {
    bool of_kernel = false;
    for (const Function &function : unit.functions)
        for (const Ref &ref : function.refs) of_kernel = of_kernel || ref.kind == RefKind::field || ref.kind == RefKind::kfunc;
    std::optional<KernelTypes> types;
    if (of_kernel || !btf.empty()) types = TRY(KernelTypes::open(btf));
    const std::vector<std::byte> object = TRY(write_object(unit, types ? types->targets().kernel : nullptr));
    return std::string(reinterpret_cast<const char *>(object.data()), object.size());
}

// What the verifier says of it, on standard error. 0: nothing is refused.
int verify_unit(const Unit &unit, const Arguments &a) {
    if constexpr (has(Part::verifier)) {
        std::vector<ObjectSpec> specs(1);
        if (Result<ObjectSpec> spec = object_of(unit))
            specs[0] = std::move(*spec);
        else
            return complain(kWho, spec.error());
        const Result<VerifyInput> input = ready_to_verify(std::move(specs), {}, a.text(option("btf")));
        if (!input) return complain(kWho, input.error());
        std::string text;
        const int status = show_verdicts(*input, {.who = kWho}, text);
        say(text);
        return status == 1 ? 1 : 0;
    }
    return complain(kWho, left_out(Part::verifier, "--verify"));
}

int run_asm(const Arguments &a) {
    Result<InputFile> file = InputFile::open(a.operands()[0]);
    if (!file) return complain(kWho, file.error(), 1);
    Result<Unit> unit = assemble_file(*file);
    if (!unit) return complain(kWho, unit.error(), 1);
    if (a.has(option("verify")))
        if (const int status = verify_unit(*unit, a)) return status;
    const bool hex = a.has(option("hex")), raw = a.has(option("raw"));
    Result<std::string> result = [&]() -> Result<std::string> {
        if (hex || raw) return bytes_of_unit(*unit, hex);
        if (a.has(option("json"))) {
            std::string text;
            append_json_header(text, a);
            return text + inspect::instructions_json(*unit);
        }
        if (a.has(option("output"))) return object_of_unit(*unit, std::string(a.text(option("btf"))));
        PrintStyle style;
        style.bytes = true;
        return print(*unit, style);
    }();
    if (!result) return complain(kWho, result.error());
    return write_result(kWho, a.text(option("output")), *result);
}

} // namespace

const Command kAsm{
    .name = "asm",
    .summary = "assemble a BPF program from text",
    .description =
        "Reads BPF assembly and makes an object file of it, with BTF and with source lines, so that the verifier's messages name "
        "the line. Without -o, --hex, --raw or --json it shows what it made: bytes and instructions, line by line.\n\n"
        "An instruction is written as LLVM writes it: `r1 += 5`, `r0 = *(u32 *)(r10 - 4)`, `if r0 == 0 goto out`, `call "
        "bpf_ktime_get_ns`, `lock *(u64 *)(r1 + 0) += r2`, `exit`. The assembler also reads what the kernel's verifier, bpftool, "
        "llvm-objdump and the conformance suite print. `NAME:` is a label, ; separates statements, # and // begin a comment. "
        "`rawbpf isa` lists the instructions, `rawbpf helper` lists the functions that they can call.\n\n"
        "`r1 = NAME ll` loads the address of NAME. Numbers may be expressions, as in C. @task_struct.mm is the offset of a "
        "member in the running kernel (CO-RE). A number that doesn't fit is an error; the assembler never truncates. Code that "
        "assembles but that no verifier accepts (a jump out of its function, an end without an exit, an address outside of the "
        "stack, an unknown section) gets a warning.\n\n"
        ".program NAME \"SECTION\" begins a program (without it: one socket filter), .function NAME a function that programs "
        "call; .map NAME TYPE [key TYPE] [value TYPE] [entries N] [flags N] defines a map; .data, .rodata and .bss NAME TYPE [= "
        "VALUE, ...] are variables, TYPE being u8 to u64, s8 to s64, char, ptr, a struct, or an array of them; .rodata NAME "
        "\"TEXT\" is a text; .struct NAME, lines of `member type`, .end is a struct; .const NAME = N (or NAME = N), .license "
        "\"GPL\", .kfunc NAME, .include \"FILE\", .8byte N.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_asm,
};

} // namespace rawbpf::inline v0::cli
