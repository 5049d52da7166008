// `rawbpf bundle`: an object as tables of C, for products that know their programs and their kernels when they are built.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "programs/inspect/bundle_header.h"
#include "programs/inspect/skeleton_header.h"
#include "runtime/base/format.h"
#include "runtime/btf/c_header.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf bundle";

constexpr Option kOptions[] = {
    {
        .name = "btf",
        .letter = 'b',
        .kind = OptionKind::file,
        .repeatable = true,
        .argument = "[NAME=]FILE",
        .help = "a kernel that the bundle is for: its types, /sys/kernel/btf/vmlinux as it is there. Once for each kernel",
        .section = "Kernels",
    },
    {.name = "name",
     .kind = OptionKind::text,
     .argument = "NAME",
     .help = "what names in the header begin with, instead of the file's name without .bpf.o",
     .section = "Output"},
    kQuietOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf bundle packets.bpf.o -o packets.h", "for every kernel, if the object depends on none"},
    {"rawbpf bundle tool.bpf.o -b board=board.btf -b 6.1.btf -o tool.h", "for the two kernels whose types these files hold"},
};

struct Kernels {
    std::vector<inspect::BtfSource> sources;
    std::vector<inspect::BundleKernel> rows;
};

Result<Kernels> open_kernels(const Arguments &a) {
    Kernels out;
    std::vector<std::string> names;
    for (std::string_view word : a.all(option("btf"))) {
        const size_t equals = word.find('='), slash = word.find('/');
        const bool named = equals != word.npos && equals < slash; // a path may have one, too
        const std::string path(named ? word.substr(equals + 1) : word);
        Result<inspect::BtfSource> source = inspect::BtfSource::of_file(path);
        if (!source) return std::move(source).failure();
        if (source->base())
            return Unexpected(make_error(Errc::invalid_argument, format("{}: these are a module's types, not a kernel's", path),
                                         "give the kernel's own: /sys/kernel/btf/vmlinux"));
        std::string_view name = named ? word.substr(0, equals) : std::string_view(path);
        if (!named) name = name.substr(name.rfind('/') + 1);
        if (!named && name.ends_with(".btf")) name.remove_suffix(4);
        names.emplace_back(name);
        out.sources.push_back(std::move(*source));
    }
    for (size_t i = 0; i < names.size(); ++i) out.rows.push_back({names[i], &out.sources[i].btf()});
    return out;
}

int run_bundle(const Arguments &a) {
    Result<ObjectFile> object = open_object(a.operands()[0]);
    if (!object) return complain(kWho, object.error(), 1);
    const std::string wanted(a.text(option("name")));
    const std::string name = inspect::skeleton_name(wanted.empty() ? object->file.name() : wanted);
    if ((!wanted.empty() && name != wanted) || btf::is_keyword(name))
        return complain(kWho,
                        make_error(Errc::invalid_argument, format("{}: not a name in C", wanted.empty() ? name : wanted),
                                   "--name gives another one"),
                        2);
    Result<Kernels> kernels = open_kernels(a);
    if (!kernels) return complain(kWho, kernels.error(), 1);
    Result<inspect::BundleHeader> header = inspect::bundle_header(object->spec, object->file.bytes(), name, kernels->rows);
    if (!header) return complain(kWho, header.error(), 1);
    if (!a.has(option("quiet")))
        for (const std::string &note : header->notes) say(format("{}: {}\n", kWho, note));
    return write_result(kWho, a.text(option("output")), header->text);
}

} // namespace

const Command kBundle{
    .name = "bundle",
    .summary = "turn an object into tables of C, relocated for known kernels",
    .description =
        "Writes a C header with an object's maps, instructions and attachments as tables. A product includes it and links "
        "librawbpf-bundle.a (14 KB, no heap), which loads and attaches them: nothing reads an object file on the machine. Where "
        "the "
        "instructions depend on the kernel (CO-RE, kernel functions, fentry and the like), the header has those of each kernel "
        "that "
        "--btf gives; the loader recognises a kernel by a hash of its types. On other kernels it refuses, unless the product "
        "defines RAWBPF_BUNDLE_LIVE: then NAME_load_live() relocates the object itself, by librawbpf-core.a.\n\n"
        "A bundle can't have struct_ops maps, arenas, jump tables, .kconfig variables and addresses of kernel symbols; rawbpf "
        "says "
        "which of these an object has. Types and functions are looked for in the kernel itself, not in its modules; what CO-RE "
        "doesn't find there is told. Programs for many functions (kprobe.multi and the like) and for USDT probes are loaded, and "
        "the product attaches them. pkg-config rawbpf-bundle has the compiler's and the linker's flags; <rawbpf/bundle.h> "
        "describes the functions.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "OBJECT",
    .least_operands = 1,
    .most_operands = 1,
    .operand_is_file = true,
    .run = run_bundle,
};

} // namespace rawbpf::inline v0::cli
