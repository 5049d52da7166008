// `rawbpf link`: several BPF objects become one, as bpftool gen object makes it.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "runtime/object/elf_object.h"
#include "runtime/object/linker.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf link";

constexpr Option kOptions[] = {
    file_output_option("the object to write; it is written only if everything went well"),
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf link -o tool.o main.bpf.o maps.bpf.o lib.bpf.o", "one object out of three"},
};

int run_link(const Arguments &a) {
    if (a.text(option("output")).empty())
        return complain(kWho, make_error(Errc::invalid_argument, "no output is given", "-o FILE"), 2);
    std::vector<InputFile> files;
    std::vector<LinkInput> inputs;
    for (std::string_view path : a.operands()) {
        Result<InputFile> file = InputFile::open(path);
        if (!file) return complain(kWho, file.error(), 1);
        files.push_back(std::move(*file));
    }
    inputs.reserve(files.size());
    for (const InputFile &file : files) inputs.push_back({file.bytes(), file.name()});
    Result<std::vector<std::byte>> object = link_objects(inputs);
    if (!object) return complain(kWho, object.error(), 1);
    return write_result(kWho, a.text(option("output")),
                        std::string_view(reinterpret_cast<const char *>(object->data()), object->size()));
}

} // namespace

const Command kLink{
    .name = "link",
    .summary = "join several BPF object files into one",
    .description = "Joins objects that were compiled one by one. Sections of the same name are appended in the order of the "
                   "files; a function, variable or map that one file declares extern and another defines becomes one; each type "
                   "is kept once; relocations and source lines are adjusted. The result is like an object that a compiler made "
                   "from all sources; rawbpf or libbpf can load it.\n\n"
                   "A name may have one strong definition, which wins over weak ones. A name that no file defines stays extern. "
                   "Licenses must agree. If two files contradict each other, the message names both.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT...",
    .least_operands = 1,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_link,
};

} // namespace rawbpf::inline v0::cli
