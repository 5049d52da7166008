// `rawbpf prog|map|link|btf list` and `show`: what is in the kernel. One function for all four kinds: only the row differs.
#include <cerrno>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "programs/running/rows.h"
#include "runtime/base/fail.h"
#include "runtime/kernel/each_object.h"
#include "runtime/kernel/find_object.h"
#include "runtime/sys/bpf.h"

namespace rawbpf::inline v0::cli {
namespace {

using running::Around;
using sys::ObjectKind;

constexpr Option kOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
    kOutputOption,
    syscalls_option(false),
};
consteval Id option(const char *name) { return find(kOptions, name); }

template <ObjectKind kind> using Row =
    std::conditional_t<kind == ObjectKind::program, running::ProgramRow,
                       std::conditional_t<kind == ObjectKind::map, running::MapRow,
                                          std::conditional_t<kind == ObjectKind::link, running::LinkRow, running::BtfRow>>>;

template <ObjectKind kind> Result<Row<kind>> ask(int fd, running::Names &names, bool fdinfo) {
    if constexpr (kind == ObjectKind::program)
        return running::program_row(fd, names, fdinfo);
    else if constexpr (kind == ObjectKind::map)
        return running::map_row(fd, fdinfo);
    else if constexpr (kind == ObjectKind::link)
        return running::link_row(fd, names);
    else
        return running::btf_row(fd);
}

/// What was there a moment ago: a link that was detached.
bool has_gone(const Error &error) { return error.os == ENOENT || error.os == ENODEV || error.os == ENOLINK; }

/// If the device of a program is gone, the program and its id still exist, but the kernel returns nothing else about it.
template <ObjectKind kind> Result<Row<kind>> ask_even_orphaned(uint32_t id, int fd, running::Names &names, bool fdinfo) {
    Result<Row<kind>> row = ask<kind>(fd, names, fdinfo);
    if constexpr (kind == ObjectKind::program)
        if (!row && row.error().os == ENODEV && id != 0) {
            Row<kind> orphan;
            orphan.info.id = id;
            orphan.orphaned = true;
            return orphan;
        }
    return row;
}

template <ObjectKind kind> uint32_t id_of(const Row<kind> &row) {
    if constexpr (kind == ObjectKind::link)
        return row.details.info.id;
    else
        return row.info.id;
}

/// Every object of this kind. Pins come first: what they hold is asked there, and isn't opened a second time by its id.
template <ObjectKind kind> Result<std::vector<Row<kind>>> all_rows(Around &around, bool fdinfo) {
    std::map<uint32_t, Row<kind>> pinned;
    around.pins = running::PinnedPaths::scan([&](ObjectKind of, int fd) -> std::optional<uint32_t> {
        if (of != kind) return std::nullopt;
        Result<Row<kind>> row = ask<kind>(fd, around.names, fdinfo);
        if (!row) return std::nullopt; // the listing below meets the same, and says it
        const uint32_t id = id_of<kind>(*row);
        pinned.emplace(id, std::move(*row));
        return id;
    });
    std::vector<Row<kind>> rows;
    TRY(each_id(kind, [&](uint32_t id) -> Result<bool> {
        if (const auto known = pinned.find(id); known != pinned.end()) {
            rows.push_back(std::move(known->second));
            return true;
        }
        Result<Fd> object = sys::fd_by_id(kind, id);
        if (!object && object.error().os == ENOENT) return true;
        const Fd open = TRY(std::move(object));
        Result<Row<kind>> row = ask_even_orphaned<kind>(id, open.get(), around.names, fdinfo);
        if (row)
            rows.push_back(std::move(*row));
        else if (!has_gone(row.error()))
            return std::move(row).failure();
        return true;
    }));
    return rows;
}

template <ObjectKind kind> Result<std::string> answer(const Arguments &a, bool whole) {
    const bool json = a.text(option("format")) == "json";
    Around around;
    std::vector<Row<kind>> rows;
    if (a.operands().empty()) {
        rows = TRY(all_rows<kind>(around, json || whole));
    } else {
        for (std::string_view word : a.operands()) {
            const Fd object = TRY(find_object(kind, std::string(word)));
            rows.push_back(TRY(ask<kind>(object.get(), around.names, json || whole)));
        }
        around.pins = running::PinnedPaths::scan();
    }
    if constexpr (kind == ObjectKind::btf) TRY(running::find_users(rows));
    if (!rows.empty()) around.holders = running::Holders::scan();
    std::string text;
    if (json) {
        append_json_header(text, a);
        for (const Row<kind> &row : rows) running::append_json(text, row, around);
        return text;
    }
    if (whole)
        for (const Row<kind> &row : rows) running::append_details(text, row, around);
    else
        text = running::as_list(rows, around);
    if (around.holders.hidden() != 0)
        say(format("rawbpf {}: {} process{} couldn't be looked at (needs CAP_SYS_PTRACE): what they hold isn't shown\n",
                   a.command().name, around.holders.hidden(), around.holders.hidden() == 1 ? "" : "es"));
    return text;
}

template <ObjectKind kind, bool whole> int run_running(const Arguments &a) {
    Result<std::string> text = answer<kind>(a, whole);
    const std::string who = format("rawbpf {}", a.command().name);
    return text ? write_result(who, a.text(option("output")), *text) : complain(who, text.error());
}

#define RAWBPF_LISTED                                                                                                            \
    "\n\nFor each, rawbpf shows which processes hold it (have a descriptor of it), where it is pinned, and names beside ids. "   \
    "In JSON, each is one object on its own line. Fields have bpftool's names where they mean the same; unknown values are "     \
    "null. Listing needs CAP_SYS_ADMIN (status 3 without it)."

#define RAWBPF_NAMED "Each is given by its name, its id or the path of a pin; without one, the command shows all. "

constexpr Example kProgListExamples[] = {
    {"sudo rawbpf prog list", "every program: its type, size, age, maps, and who holds it"},
    {"sudo rawbpf prog list --json | jq -r 'select(.jited) | .name'", "the names of those that run as machine code"},
};
constexpr Example kProgShowExamples[] = {
    {"sudo rawbpf prog show 42", "everything that the kernel tells about a program"},
    {"sudo rawbpf prog show on_exec /sys/fs/bpf/tool/on_exit", "by name, and by pin"},
};
constexpr Example kMapListExamples[] = {{"sudo rawbpf map list", "every map: its type, sizes, and who holds it"}};
constexpr Example kMapShowExamples[] = {{"sudo rawbpf map show counts", "flags, memory and types of a map"}};
constexpr Example kLinkListExamples[] = {{"sudo rawbpf link list", "which program is attached where"}};
constexpr Example kLinkShowExamples[] = {{"sudo rawbpf link show 7", "a link with all its attach points and cookies"}};
constexpr Example kBtfListExamples[] = {{"sudo rawbpf btf list", "loaded types, and the programs and maps that use them"}};
constexpr Example kBtfShowExamples[] = {{"sudo rawbpf btf show vmlinux", "the kernel's own types"}};

} // namespace

const Command kProgList{
    .name = "prog list",
    .summary = "list the programs in the kernel",
    .description = "Lists every loaded BPF program, with its full name: the kernel keeps 15 characters of a name, and rawbpf "
                   "takes the rest from the program's BTF." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kProgListExamples,
    .run = run_running<ObjectKind::program, false>,
};

const Command kProgShow{
    .name = "prog show",
    .summary = "show everything about a program",
    .description = "Shows programs, one property per line. " RAWBPF_NAMED
                   "Runs and their time are counted while sysctl kernel.bpf_stats_enabled is 1." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kProgShowExamples,
    .operand = "ID|NAME|PIN",
    .most_operands = 1000,
    .operand_kind = "programs",
    .run = run_running<ObjectKind::program, true>,
};

const Command kMapList{
    .name = "map list",
    .summary = "list the maps in the kernel",
    .description = "Lists every map in the kernel." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kMapListExamples,
    .run = run_running<ObjectKind::map, false>,
};

const Command kMapShow{
    .name = "map show",
    .summary = "show everything about a map",
    .description = "Shows maps, one property per line. " RAWBPF_NAMED RAWBPF_LISTED,
    .options = kOptions,
    .examples = kMapShowExamples,
    .operand = "ID|NAME|PIN",
    .most_operands = 1000,
    .operand_kind = "maps",
    .run = run_running<ObjectKind::map, true>,
};

const Command kLinkList{
    .name = "link list",
    .summary = "list the BPF links in the kernel: which program is attached where",
    .description =
        "Lists every BPF link (5.8): which program is attached, and to what. Programs that a process attached without a link "
        "(perf "
        "events before 5.15, tc filters) are in rawbpf prog list, with who holds them." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kLinkListExamples,
    .run = run_running<ObjectKind::link, false>,
};

const Command kLinkShow{
    .name = "link show",
    .summary = "show everything about a BPF link",
    .description = "Shows BPF links, one property per line, with every attach point of a multi attachment. A link is given by "
                   "its id or the path of a pin; without one, the command shows all." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kLinkShowExamples,
    .operand = "ID|PIN",
    .most_operands = 1000,
    .operand_kind = "links",
    .run = run_running<ObjectKind::link, true>,
};

const Command kBtfList{
    .name = "btf list",
    .summary = "list the types (BTF) in the kernel",
    .description =
        "Lists all BTF that is loaded (5.4): the kernel's, its modules', and what objects brought along; with the programs and "
        "maps that use it. rawbpf btf dump ID shows the types." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kBtfListExamples,
    .run = run_running<ObjectKind::btf, false>,
};

const Command kBtfShow{
    .name = "btf show",
    .summary = "show who uses loaded types (BTF)",
    .description =
        "Shows loaded BTF, one property per line. It is given by its id, or by the name of a module or vmlinux; without one, the "
        "command shows all." RAWBPF_LISTED,
    .options = kOptions,
    .examples = kBtfShowExamples,
    .operand = "ID|NAME",
    .most_operands = 1000,
    .operand_kind = "btf",
    .run = run_running<ObjectKind::btf, true>,
};

} // namespace rawbpf::inline v0::cli
