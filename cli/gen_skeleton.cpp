// `rawbpf gen skeleton`: an object as a header of C++, with its variables, maps and programs as members.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "programs/inspect/skeleton_header.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf gen skeleton";

constexpr Option kOptions[] = {
    {.name = "name",
     .kind = OptionKind::text,
     .argument = "NAME",
     .help = "the namespace, instead of the file's name without .bpf.o",
     .section = "Output",
     .was = "n"},
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf gen skeleton tool.bpf.o -o tool.skel.h", "namespace tool, with class Skeleton"},
};

int run_gen_skeleton(const Arguments &a) {
    Result<ObjectFile> object = open_object(a.operands()[0]);
    if (!object) return complain(kWho, object.error(), 1);
    const std::string wanted(a.text(option("name")));
    const std::string name = inspect::skeleton_name(wanted.empty() ? object->file.name() : wanted);
    if (!wanted.empty() && name != wanted)
        return complain(kWho, make_error(Errc::invalid_argument, format("--name {}: not a name in C++", wanted)), 2);
    Result<std::string> text = inspect::skeleton_header(object->spec, object->file.bytes(), name);
    if (!text) return complain(kWho, text.error(), 1);
    return write_result(kWho, a.text(option("output")), *text);
}

} // namespace

const Command kGenSkeleton{
    .name = "gen skeleton",
    .summary = "make a C++ header of an object: variables, maps, programs",
    .description =
        "Writes one header that holds an object and a class for it: open() parses it, load() has the kernel verify it, attach() "
        "attaches it. Each section of global variables is a struct with the program's own layout; after load() it is mapped, so "
        "that program and user space see each other's writes. If the keys and values of a map have types, get and put use them. "
        "Build it against the installed library (pkg-config --cflags --libs rawbpf), with or without exceptions.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_gen_skeleton,
};

} // namespace rawbpf::inline v0::cli
