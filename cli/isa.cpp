// `rawbpf isa`: shows the instruction set, from the table that the assembler uses.
#include "asm/isa_text.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf isa";

constexpr Option kOptions[] = {format_option("text", "text json"), kJsonOption};

constexpr Example kExamples[] = {
    {"rawbpf isa", "list all instructions, one per line"},
    {"rawbpf isa jslt", "what the instruction does, its bytes, the first kernel that has it; all its forms"},
    {"rawbpf isa 's>>='", "find instructions by their operator"},
    {"rawbpf isa 0xdb", "find an instruction by its opcode, or just db"},
    {"rawbpf isa --json", "all instructions, for scripts"},
};

void append_form(std::string &out, const Form &form) {
    render::JsonLine line(out, "instruction");
    line.text("name", form.name)
        .number("opcode", form.code)
        .text("example", isa_example(form))
        .text("does", isa_meaning(form))
        .text_or_null("since", form.since == KernelVersion{} ? "" : format("{}.{}", form.since.major, form.since.minor));
    if (form.cpu > 4)
        line.null("cpu");
    else
        line.text("cpu", format("v{}", form.cpu));
}

int run_isa(const Arguments &a) {
    std::string out;
    const bool json = a.text(find(kOptions, "format")) == "json";
    if (json) append_json_header(out, a);
    if (a.operands().empty()) {
        if (!json) return print(isa_table());
        for (const Form &form : isa::kForms) append_form(out, form);
        return print(out);
    }
    const std::string_view word = a.operands()[0];
    const std::vector<const Form *> forms = find_forms(word);
    if (forms.empty())
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("there is no instruction {}", word),
                                   isa_hint(word) + "\nrawbpf isa lists them"),
                        1);
    for (const Form *form : forms)
        if (json)
            append_form(out, *form);
        else
            out += (out.empty() ? "" : "\n") + isa_entry(*form);
    return print(out);
}

} // namespace

const Command kIsa{
    .name = "isa",
    .summary = "show the instruction set",
    .description =
        "Lists the instructions of BPF (RFC 9669, and what the kernel has added since), or describes one: what it does, how its "
        "bytes are laid out, how LLVM, the kernel's verifier and the conformance suite write it, and the first kernel whose "
        "verifier accepts it. In the layout, dst, src, off and imm are operands; a number is a fixed value.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "MNEMONIC",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_isa,
};

} // namespace rawbpf::inline v0::cli
