// `rawbpf btf dump`: prints the types of the kernel, of a module, of a file or of loaded BTF: as C (vmlinux.h), as a listing, as
// JSON.
#include <optional>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/inspect/btf_list.h"
#include "programs/inspect/btf_source.h"
#include "runtime/base/fail.h"
#include "runtime/base/numbers.h"
#include "runtime/btf/c_header.h"
#include "runtime/btf/print_raw.h"
#include "runtime/sys/file.h"

namespace rawbpf::inline v0::cli {
namespace {

using inspect::BtfSource;

constexpr std::string_view kWho = "rawbpf btf dump";

constexpr Option kOptions[] = {
    {.name = "base",
     .letter = 'B',
     .kind = OptionKind::file,
     .argument = "FILE",
     .help = "if FILE has split BTF: read its base BTF from this file, instead of using the running kernel's types",
     .section = "What"},
    {.name = "no-kfuncs",
     .help = "c: leave out the prototypes of the kernel's functions for BPF programs",
     .only_with = "format=c"},
    format_option("raw", "raw c json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf btf dump -f c > vmlinux.h", "the running kernel's types as a header for BPF programs"},
    {"rawbpf btf dump vmlinux -f c task_struct vfs_read",
     "a header with this struct, this function, and the types that they need"},
    {"rawbpf btf dump module nf_conntrack", "the types that a module adds, listed by number"},
    {"rawbpf btf dump prog.bpf.o --json | jq -c 'select(.kind == \"datasec\")'", "the sections of an object that hold variables"},
};

/// Opens the source that the first operands name; the operands that are left are types.
Result<BtfSource> open_source(std::span<const std::string_view> &operands, const std::string &base) {
    if (operands.empty()) return BtfSource::of_kernel("vmlinux");
    const std::string first(operands[0]);
    operands = operands.subspan(1);
    if (first == "vmlinux" && !sys::exists(first)) return BtfSource::of_kernel(first);
    if (first == "module") {
        if (operands.empty()) return fail(Errc::invalid_argument, "module needs the name of a kernel module");
        const std::string name(operands[0]);
        operands = operands.subspan(1);
        return BtfSource::of_kernel(name);
    }
    if (std::optional<uint32_t> id = whole_number<uint32_t>(first); id && !sys::exists(first)) return BtfSource::of_id(*id);
    if (first != "-")
        if (const auto st = sys::stat_file(first); !st && st.error().kind == Errc::not_found)
            return Unexpected(make_error(Errc::not_found, format("there is no file {}", first),
                                         format("for a type of the running kernel: {} vmlinux {}", kWho, first)));
    return BtfSource::of_file(first, base);
}

Result<std::vector<btf::TypeId>> find_types(const BtfSource &source, std::span<const std::string_view> names) {
    std::vector<btf::TypeId> out;
    for (std::string_view name : names) {
        std::vector<btf::TypeId> found;
        if (std::optional<uint32_t> id = whole_number<uint32_t>(name)) {
            if (*id > 0 && *id < source.btf().end_id()) found.push_back(*id);
        } else {
            for (std::string_view word : {"struct ", "union ", "enum "})
                if (name.starts_with(word)) name.remove_prefix(word.size());
            found = source.btf().find_all(name);
            if (found.empty() && source.base()) found = source.base()->find_all(name);
        }
        if (found.empty()) return fail(Errc::not_found, "{}: there is no type {}", source.btf().name(), name);
        out.insert(out.end(), found.begin(), found.end());
    }
    return out;
}

Result<void> dump(const BtfSource &source, std::span<const btf::TypeId> types, const Arguments &a, render::Writer &writer) {
    const btf::Btf &btf = source.btf();
    const std::string_view shape = a.text(option("format"));
    if (shape == "c") {
        writer.write(TRY(btf::c_header(btf, {.roots = types, .kfuncs = !a.has(option("no-kfuncs"))})));
        return writer.flush();
    }
    std::vector<btf::TypeId> all;
    if (types.empty()) {
        for (btf::TypeId id = btf.first_id(); id < btf.end_id(); ++id) all.push_back(id);
        types = all;
    }
    if (shape == "json") {
        append_json_header(writer.text(), a);
        for (btf::TypeId id : types) {
            TRY(inspect::append_type_json(writer.text(), btf, id));
            writer.commit();
        }
        return writer.flush();
    }
    const btf::RawPrinter printer = TRY(btf::RawPrinter::make(btf));
    for (btf::TypeId id : types) {
        printer.append(writer.text(), id);
        writer.commit();
    }
    return writer.flush();
}

int run_btf_dump(const Arguments &a) {
    std::span<const std::string_view> rest = a.operands();
    Result<BtfSource> source = open_source(rest, std::string(a.text(option("base"))));
    if (!source) return complain(kWho, source.error(), source.error().kind == Errc::invalid_argument ? 2 : 0);
    Result<std::vector<btf::TypeId>> types = find_types(*source, rest);
    if (!types) return complain(kWho, types.error());
    return write_output(kWho, a.text(option("output")),
                        [&](Output &output) { return dump(*source, *types, a, output.writer()); });
}

} // namespace

const Command kBtfDump{
    .name = "btf dump",
    .summary = "print types: as C (vmlinux.h), by number, as JSON",
    .description = "Prints the types in BTF: those of the running kernel (vmlinux, the default), of one of its modules, of a "
                   "file (.btf, or an ELF file with a section .BTF: a BPF object, a vmlinux), or of loaded BTF, given by its id. "
                   "If names or numbers of types follow, it prints only those types.\n\n"
                   "Format c is a header (vmlinux.h) that clang compiles for BPF; every struct has the layout that it has in the "
                   "kernel. `bpftool btf dump ... format c` writes such a header, too. A loader relocates accesses to these "
                   "types for the kernel that runs the program (CO-RE); define BPF_NO_PRESERVE_ACCESS_INDEX to switch that off, "
                   "and BPF_NO_KFUNC_PROTOTYPES to leave out the functions. If you name types, the header has these and the "
                   "types that they need. Two types of the same name become NAME and NAME___2; CO-RE ignores the suffix. Format "
                   "raw is a listing like bpftool's, type by type; json has the same content, one object per type.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "FILE | ID | vmlinux | module NAME [TYPE]...",
    .most_operands = 1000,
    .operand_is_file = true,
    .run = run_btf_dump,
};

} // namespace rawbpf::inline v0::cli
