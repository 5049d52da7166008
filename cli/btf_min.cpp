// `rawbpf btf min`: writes the part of a kernel's BTF that the relocations of some objects need.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/object_file.h"
#include "runtime/base/format.h"
#include "runtime/object/min_btf.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf btf min";

constexpr Option kOptions[] = {
    file_output_option("write the small BTF to this file instead of standard output"),
    kQuietOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf btf min 5.4.btf prog.bpf.o -o 5.4-prog.btf",
     "a few kilobytes, to be installed with the object on machines with that kernel"},
};

int run_btf_min(const Arguments &a) {
    const std::span<const std::string_view> operands = a.operands();
    if (is_terminal(1) && a.text(option("output")).empty())
        return complain(
            kWho, make_error(Errc::invalid_argument, "BTF is binary, and standard output is a terminal", "name a file: -o FILE"),
            2);
    Result<inspect::BtfSource> kernel = inspect::BtfSource::of_file(std::string(operands[0]));
    if (!kernel) return complain(kWho, kernel.error(), 1);
    std::vector<ObjectSpec> specs;
    for (std::string_view path : operands.subspan(1)) {
        Result<ObjectFile> object = open_object(path);
        if (!object) return complain(kWho, object.error(), 1);
        specs.push_back(std::move(object->spec));
    }
    Result<MinimalBtf> small = minimal_btf(specs, kernel->btf());
    if (!small) return complain(kWho, small.error(), 1);
    const std::string_view text(reinterpret_cast<const char *>(small->btf.data()), small->btf.size());
    if (const int status = write_result(kWho, a.text(option("output")), text)) return status;
    if (a.has(option("quiet"))) return 0;
    say(format("{}: {} types, {} bytes, for {} relocations{}\n", kWho, small->types, small->btf.size(), small->relocations,
               small->missing ? format(" ({} more have no match in this kernel)", small->missing) : std::string()));
    if (small->type_ids)
        say(format("{}: {} for the id of a kernel's type; with this file, the result is a different number\n", kWho,
                   small->type_ids == 1 ? "1 relocation asks" : format("{} relocations ask", small->type_ids)));
    return 0;
}

} // namespace

const Command kBtfMin{
    .name = "btf min",
    .summary = "write only those of a kernel's types that some objects need",
    .description =
        "Writes BTF with only those types, members and enumerators of a kernel that the CO-RE relocations of these objects refer "
        "to. On a kernel that has no BTF itself, a loader (rawbpf load --btf FILE, libbpf's btf_custom_path) relocates the "
        "objects with this file exactly as with the whole BTF. KERNEL is a raw BTF file or a vmlinux.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "KERNEL OBJECT...",
    .least_operands = 2,
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_btf_min,
};

} // namespace rawbpf::inline v0::cli
