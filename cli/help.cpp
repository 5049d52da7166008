// --help, from the tables. An option takes two columns, spelling and meaning; a spelling that is too long for its column gets
// a line of its own. Lines have at most 80 columns on every terminal, so that help in a bug report always looks the same.
#include "cli/help.h"

#include <algorithm>
#include <utility>

#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr size_t kWidth = 80, kMeaning = 29;
constexpr std::string_view kWithoutManual = "This build leaves out the manual: a rawbpf that has the part manual says here what "
                                            "the command does, and what its options mean.";

std::string heading(std::string_view text, bool bold) {
    return bold ? format("\x1b[1m{}:\x1b[0m\n", text) : format("{}:\n", text);
}

std::string option_spelling(const Option &option) {
    std::string out = option.letter ? format("  -{}, --{}", option.letter, option.name) : format("      --{}", option.name);
    if (!option.argument.empty()) append(out, "{}{}", option.kind == OptionKind::flag ? "" : " ", option.argument);
    return out;
}

std::string option_meaning(const Option &option) {
    std::string out(option.help);
    if (!option.choices.empty()) {
        if (!out.empty()) out += ": ";
        bool first = true;
        for (std::string_view choice : split(option.choices, ' '))
            append(out, "{}{}", std::exchange(first, false) ? "" : ", ", choice);
    }
    if (option.repeatable) append(out, "{}may be repeated", out.empty() ? "" : "; ");
    if (!option.fallback.empty()) append(out, "{}[{}]", out.empty() ? "" : " ", option.fallback);
    return out;
}

} // namespace

std::string wrapped(std::string_view text, size_t width, size_t indent) {
    std::string out;
    size_t column = indent;
    bool line_is_empty = true;
    for (size_t at = 0; at < text.size();) {
        if (text[at] == '\n') {
            out += '\n';
            if (at + 1 < text.size() && text[at + 1] != '\n') out.append(indent, ' ');
            column = indent;
            line_is_empty = true;
            ++at;
            continue;
        }
        if (text[at] == ' ') {
            ++at;
            continue;
        }
        size_t end = std::min(text.find_first_of(" \n", at), text.size());
        std::string_view word = text.substr(at, end - at);
        if (!line_is_empty && column + 1 + word.size() > width) {
            out += '\n';
            out.append(indent, ' ');
            column = indent;
            line_is_empty = true;
        }
        if (!line_is_empty) out += ' ', ++column;
        out += word;
        column += word.size();
        line_is_empty = false;
        at = end;
    }
    return out;
}

std::string synopsis(const Command &command) {
    std::string out = format("rawbpf {}", command.name);
    if (!command.options.empty()) out += " [OPTION]...";
    if (!command.operand.empty())
        out += command.least_operands ? format(" {}", command.operand) : format(" [{}]", command.operand);
    if (command.workload) out += " [-- COMMAND [ARG]...]";
    return out;
}

std::string help_text(const Command &command, bool bold) {
    std::string out = heading("Usage", bold);
    append(out, "  {}\n\n{}\n", synopsis(command), wrapped(RAWBPF_HAS_MANUAL ? command.description : kWithoutManual, kWidth, 0));
    for (const Option &option : built_options(command)) {
        if (!option.section.empty()) append(out, "\n{}", heading(option.section, bold));
        std::string spelling = option_spelling(option);
        if (spelling.size() + 2 > kMeaning)
            append(out, "{}\n{:{}}", spelling, "", kMeaning);
        else
            append(out, "{:<{}}", spelling, kMeaning);
        append(out, "{}\n", wrapped(option_meaning(option), kWidth, kMeaning));
    }
    if (!RAWBPF_HAS_MANUAL) return out;
    if (!command.examples.empty()) append(out, "\n{}", heading("Examples", bold));
    for (const Example &example : command.examples)
        append(out, "  {}\n      {}\n", std::string_view(example.command), wrapped(example.what, kWidth, 6));
    return out;
}

std::string help_text(const Topic &topic, bool bold) {
    std::string out = format("{}\n", wrapped(topic.description, kWidth, 0));
    for (const Topic::Row &row : topic.rows)
        if (row.form.empty())
            append(out, "\n{}", heading(row.meaning, bold));
        else
            append(out, "  {}\n      {}\n", row.form, wrapped(row.meaning, kWidth, 6));
    append(out, "\n{}", heading("Example", bold));
    for (std::string_view rest = topic.example; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        append(out, "{}{}\n", end == 0 ? "" : "  ", rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
}

std::string help_text(std::string_view group, std::span<const Command *const> commands, bool bold) {
    std::string out =
        format("{}  rawbpf {} COMMAND [OPTION]... [ARGUMENT]...\n\n{}", heading("Usage", bold), group, heading("Commands", bold));
    for (const Command *command : commands) append(out, "  {:<14}{}\n", command->name, wrapped(command->summary, kWidth, 16));
    append(out, "\nrawbpf {} COMMAND --help explains a command.\n", group);
    return out;
}

std::string help_text(std::span<const Command *const> commands, bool bold) {
    std::string out = "rawbpf: eBPF tools that call bpf(2) directly\n\n";
    append(out, "{}  rawbpf COMMAND [OPTION]... [ARGUMENT]... [-- COMMAND [ARG]...]\n\n{}", heading("Usage", bold),
           heading("Commands", bold));
    for (const Command *command : commands)
        if (!command->hidden) append(out, "  {:<14}{}\n", command->name, wrapped(command->summary, kWidth, 16));
    append(out, "\n{}", heading("Exit status", bold));
    for (const ExitStatus &s : kExitStatuses) append(out, "  {}  {}\n", s.status, wrapped(s.meaning, kWidth, 5));
    out += "\nrawbpf COMMAND --help explains a command; rawbpf --version prints the version.\n";
    return out;
}

} // namespace rawbpf::inline v0::cli
