// Pages in Markdown (CommonMark), from the tables: what man.cpp writes as man pages, for readers of a web page. Text in backticks
// is code, in the tables and in Markdown. Other characters that Markdown would interpret get a backslash.
#include <utility>

#include "cli/help.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

std::string markdown(std::string_view text) {
    std::string out;
    bool code = false;
    for (char c : text) {
        if (c == '`') code = !code;
        if (!code && std::string_view("\\*_<>[]#|").find(c) != std::string_view::npos) out += '\\';
        out += c;
    }
    return out;
}

void append_option(std::string &out, const Option &option) {
    const std::string value =
        option.argument.empty() ? "" : format("{}{}", option.kind == OptionKind::flag ? "" : " ", option.argument);
    out += "- ";
    if (option.letter) append(out, "`-{}{}`, ", option.letter, value);
    append(out, "`--{}{}`: {}.", option.name, value, markdown(option.help));
    if (!option.choices.empty()) {
        out += " One of";
        bool first = true;
        for (std::string_view choice : split(option.choices, ' '))
            append(out, "{} `{}`", std::exchange(first, false) ? "" : ",", choice);
        out += '.';
    }
    if (option.repeatable) out += " May be repeated.";
    if (!option.fallback.empty()) append(out, " Default: `{}`.", option.fallback);
    out += '\n';
}

} // namespace

std::string markdown_page(const Command &command) {
    std::string out = format("# rawbpf {}\n\n{}.\n\n## Usage\n\n```\n{}\n```\n\n{}\n", command.name, markdown(command.summary),
                             synopsis(command), markdown(command.description));
    if (!command.options.empty()) out += "\n## Options\n";
    const std::vector<Option> options = built_options(command);
    for (const Option &option : options) {
        if (!option.section.empty())
            append(out, "\n### {}\n\n", markdown(option.section));
        else if (&option == &options.front())
            out += '\n';
        append_option(out, option);
    }
    if (!command.examples.empty()) out += "\n## Examples\n";
    for (const Example &example : command.examples)
        append(out, "\n{}:\n\n```\n{}\n```\n", markdown(example.what), std::string_view(example.command));
    out += "\n## Exit status\n\n";
    for (const ExitStatus &s : kExitStatuses) append(out, "- `{}`: {}\n", s.status, markdown(s.meaning));
    return out;
}

} // namespace rawbpf::inline v0::cli
