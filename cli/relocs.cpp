// `rawbpf relocs`: every CO-RE relocation of an object: what it was, what it becomes on a kernel, and why.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "programs/inspect/core_view.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf relocs";

constexpr Option kOptions[] = {
    {.name = "btf",
     .letter = 'b',
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "relocate to the kernel with these types (BTF or a vmlinux) instead of the running one",
     .section = "What"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf relocs prog.bpf.o", "how the running kernel's types differ from those it was compiled with"},
    {"rawbpf relocs prog.bpf.o --btf 5.10.btf --json", "the same for another kernel, one JSON object per relocation"},
};

int run_relocs(const Arguments &a) {
    Result<ObjectFile> object = open_object(a.operands()[0]);
    if (!object) return complain(kWho, object.error(), 1);
    Result<KernelTypes> kernel = KernelTypes::open(std::string(a.text(option("btf"))));
    if (!kernel) return complain(kWho, kernel.error());
    Result<inspect::CoreView> view = inspect::view_core(object->spec, kernel->targets(), kernel->name());
    if (!view) return complain(kWho, view.error(), 1);
    std::string text;
    if (a.text(option("format")) == "json") {
        append_json_header(text, a);
        append_relocs_json(text, *view, object->file.name());
    } else {
        append_relocs_text(text, *view);
    }
    return write_result(kWho, a.text(option("output")), text);
}

} // namespace

const Command kRelocs{
    .name = "relocs",
    .summary = "show how an object's CO-RE relocations resolve",
    .description = "Shows every CO-RE relocation of an object: the instruction, what it depends on, its value in the types that "
                   "the object was compiled with and in the kernel's types, and each type of that name that didn't match, with "
                   "the reason. A relocation is \"missing\" if the kernel has no match; it is \"guarded\" if the program asks "
                   "first, so that the verifier never reaches the access.\n\n"
                   "The command loads nothing. It reads the types of the running kernel and its modules from /sys/kernel/btf, "
                   "which needs no privileges.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_relocs,
};

} // namespace rawbpf::inline v0::cli
