// `rawbpf map dump`: everything that a loaded map holds, written as it is read.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/running/dump.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/find_object.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf map dump";

constexpr Option kOptions[] = {
    {.name = "all", .help = "also show the elements of arrays that are zero; JSON always has them", .section = "What"},
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"sudo rawbpf map dump counts", "every key and value, by their types"},
    {"sudo rawbpf map dump 42 --json | jq -c 'select(.type == \"entry\") | .formatted'", "the same for scripts"},
};

Result<void> dump(const Arguments &a, render::Writer &out) {
    const Map map = TRY(Map::from_fd(TRY(find_object(sys::ObjectKind::map, std::string(a.operands()[0])))));
    running::Names names;
    const bool json = a.text(option("format")) == "json";
    if (json) append_json_header(out.text(), a);
    return running::dump_map(map, names, {.json = json, .all = a.has(option("all"))}, out);
}

int run_dump(const Arguments &a) {
    return write_output(kWho, a.text(option("output")), [&](Output &output) { return dump(a, output.writer()); });
}

} // namespace

const Command kMapDump{
    .name = "map dump",
    .summary = "show everything that a map holds",
    .description =
        "Shows every entry of a loaded map. The map is given by its name, its id or the path of a pin. Keys and values "
        "are shown by the types that the map was loaded with (BTF), global variables by name, programs and maps in maps by id "
        "and name. Hash maps have no order, and entries that others add or delete meanwhile may be missed.\n\n"
        "Entries are written as they are read, in batches where the kernel has them (5.6), so a map of any size takes little "
        "memory. JSON has an object for each entry, with bpftool's fields: key and value as bytes, and formatted by their "
        "types (null without types).",
    .options = kOptions,
    .examples = kExamples,
    .operand = "ID|NAME|PIN",
    .least_operands = 1,
    .most_operands = 1,
    .operand_kind = "maps",
    .run = run_dump,
};

} // namespace rawbpf::inline v0::cli
