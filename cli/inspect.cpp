// `rawbpf inspect`: shows what an object file holds and what it needs from a kernel. It asks no kernel and needs no privileges.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/inspect/object_view.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf inspect";

constexpr Option kOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    verbose_option("text: also show every instruction of every program"),
    kSyscallsOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf inspect prog.bpf.o", "programs, maps, global variables, what the object needs from the kernel"},
    {"rawbpf inspect prog.bpf.o --json | jq -c 'select(.type == \"program\")'", "only the programs, one JSON object each"},
};

int run_inspect(const Arguments &a) {
    Result<ObjectFile> object = open_object(a.operands()[0]);
    if (!object) return complain(kWho, object.error(), 1);
    const bool json = a.text(option("format")) == "json";
    Result<std::string> shown = json ? inspect::object_json(object->spec, object->file.bytes())
                                     : inspect::object_text(object->spec, object->file.bytes());
    if (!shown) return complain(kWho, shown.error(), 1);
    std::string text;
    if (json) append_json_header(text, a);
    text += *shown;
    if (!json && a.has(option("verbose"))) text += "\n" + print_spec(object->spec);
    return write_result(kWho, a.text(option("output")), json ? text : printable_lines(text));
}

} // namespace

const Command kInspect{
    .name = "inspect",
    .summary = "show what a BPF object holds, without a kernel",
    .description = "Shows what is in a BPF object file: its sections, programs with their types, maps, global variables with "
                   "their offsets and initial values, what the kernel must have, and every relocation. The command loads "
                   "nothing, asks no kernel and needs no privileges.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_inspect,
};

} // namespace rawbpf::inline v0::cli
