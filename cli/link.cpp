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
    {.name = "output",
     .letter = 'o',
     .kind = Kind::file,
     .written = true,
     .argument = "FILE",
     .help = "the object to write; written only when everything went well",
     .section = "Output"},
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf link -o tool.o main.bpf.o maps.bpf.o lib.bpf.o", "one object out of three"},
};

int run_link(const Arguments &a) {
    if (a.text(option("output")).empty())
        return complain(kWho, make_error(Errc::invalid_argument, "where to? An output is needed", "-o FILE"), 2);
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
    .summary = "link several BPF objects into one",
    .description =
        "Joins objects that were compiled one by one: sections of one name behind each other, in the files' order; functions, "
        "variables and maps that one file declares extern and another defines become one; each type is kept once; relocations "
        "and "
        "source lines move along. The result is an object as a compiler would have made it of all sources, for rawbpf or libbpf "
        "to load."
        "\n\n"
        "A name may have one strong definition; it wins over weak ones. What no file defines stays extern. Licenses have to "
        "agree. When two files contradict each other, both are named.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT...",
    .least_operands = 1,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_link,
};

} // namespace rawbpf::inline v0::cli
