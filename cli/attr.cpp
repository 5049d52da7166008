// `rawbpf attr`: the commands of bpf(2), and what stands in union bpf_attr for each.
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/console.h"
#include "cli/object_file.h"
#include "cli/suggest.h"
#include "programs/inspect/attributes.h"
#include "programs/render/columns.h"
#include "programs/render/json_line.h"
#include "runtime/base/format.h"
#include "runtime/sys/names.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr std::string_view kWho = "rawbpf attr";

constexpr Option kOptions[] = {
    format_option("text", "text json"),
    kJsonOption,
};
consteval Id option(const char *name) { return find(kOptions, name); }

constexpr Example kExamples[] = {
    {"rawbpf attr", "every command of bpf(2), and since when there is it"},
    {"rawbpf attr BPF_PROG_LOAD", "its fields: place, size, since when, meaning"},
    {"rawbpf attr link_create --json", "the same for scripts"},
};

void append_command(std::string &out, uint32_t n, const inspect::AttributeCommand &command) {
    render::JsonLine(out, "command")
        .number("number", n)
        .text("name", sys::command_name(n))
        .text("since", command.since)
        .text("does", command.does);
}

std::string list(bool json, std::string out) {
    render::Columns columns({{"NUMBER", true}, {"SINCE"}, {"COMMAND"}, {"WHAT IT DOES"}});
    for (uint32_t n = 0; n < inspect::attribute_commands(); ++n) {
        const inspect::AttributeCommand command = inspect::attribute_command(n);
        if (json) {
            append_command(out, n, command);
        } else {
            columns.row({std::to_string(n), std::string(command.since), sys::command_name(n), std::string(command.does)});
        }
    }
    if (!json) columns.append_to(out);
    return out;
}

std::string page(uint32_t n, bool json, std::string out) {
    const inspect::AttributeCommand command = inspect::attribute_command(n);
    const std::vector<inspect::AttributeField> fields = inspect::attribute_fields(n);
    if (json) {
        append_command(out, n, command);
        for (const inspect::AttributeField &field : fields)
            render::JsonLine(out, "field")
                .text("name", field.name)
                .number("offset", field.offset)
                .number("size", field.size)
                .text("kind", field.kind)
                .text("since", field.since)
                .text("meaning", field.meaning);
        return out;
    }
    append(out, "{}, {}: {} (Linux {})\n", sys::command_name(n), n, command.does, command.since);
    if (fields.empty()) return out;
    out += '\n';
    render::Columns columns({{"OFFSET", true}, {"SIZE", true}, {"FIELD"}, {"KIND"}, {"SINCE"}, {"MEANING"}});
    for (const inspect::AttributeField &field : fields)
        columns.row({std::to_string(field.offset), std::to_string(field.size), std::string(field.name), std::string(field.kind),
                     std::string(field.since), std::string(field.meaning)});
    columns.append_to(out);
    return out;
}

std::string cased(std::string text, bool upper) {
    for (char &c : text)
        if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(c ^ 32);
    return text;
}

int run_attr(const Arguments &a) {
    const bool json = a.text(option("format")) == "json";
    std::optional<uint32_t> command;
    if (!a.operands().empty()) {
        const std::string_view word = a.operands()[0];
        command = inspect::attribute_command_named(word);
        if (!command) {
            std::vector<std::string> names;
            for (uint32_t n = 0; n < inspect::attribute_commands(); ++n) names.push_back(cased(sys::command_name(n), false));
            const bool prefixed = cased(std::string(word), false).starts_with("bpf_");
            const Suggestion near = nearest(prefixed ? std::string(word) : "bpf_" + std::string(word),
                                            std::vector<std::string_view>(names.begin(), names.end()));
            return complain(
                kWho,
                make_error(Errc::invalid_argument, format("bpf(2) has no command {}", word),
                           (near.close ? format("did you mean {}?\n", cased(std::string(near.word), true)) : std::string()) +
                               "rawbpf attr lists them"),
                1);
        }
    }
    std::string text;
    if (json) append_json_header(text, a);
    return print(command ? page(*command, json, std::move(text)) : list(json, std::move(text)));
}

} // namespace

const Command kAttr{
    .name = "attr",
    .summary = "explain bpf(2): its commands and their fields",
    .description = "Lists the commands of the system call bpf(2), or shows the fields of union bpf_attr that one of them reads "
                   "and writes: its offset, its size, the first kernel that has it, and what it means. COMMAND is a name, with "
                   "or without BPF_, or a number. If a kernel doesn't know a field, the field must be zero; otherwise the call "
                   "fails with E2BIG. BPF_LINK_CREATE's fields depend on the type of link: those with a dot are members of a "
                   "union, and several of them have the same offset.\n\n"
                   "In other commands, --syscalls shows rawbpf's own calls with these fields.",
    .options = kOptions,
    .examples = kExamples,
    .operand = "COMMAND",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_attr,
};

} // namespace rawbpf::inline v0::cli
