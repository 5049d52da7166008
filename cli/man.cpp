// Man pages, from the tables, in the few man(7) macros that groff and mandoc share:
//
//      .TH title section date source manual    .SH heading    .TP + tag + text    .PP paragraph    .B bold    .EX/.EE example
//
// A dash in an option must be `\-` (a plain one may become a hyphen that can't be searched or pasted), a backslash `\e`, and a
// line must not begin with '.' or '\''. There is no date in the title: the same tree gives the same bytes.
#include <algorithm>
#include <utility>

#include "cli/help.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

std::string roff(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (char c : text) {
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        line_start = c == '\n';
    }
    return out;
}

std::string title(std::string_view name, int section = 1) {
    std::string upper;
    for (char c : name) upper += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    return format(".TH {} {} \"\" \"rawbpf " RAWBPF_VERSION "\" \"rawbpf\"\n", roff(upper), section);
}

std::string paragraphs(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        size_t end = std::min(text.find("\n\n"), text.size());
        append(out, "{}{}\n", out.empty() ? "" : ".PP\n", roff(text.substr(0, end)));
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return out;
}

std::string exit_status() {
    std::string out = ".SH EXIT STATUS\n";
    for (const ExitStatus &s : kExitStatuses) append(out, ".TP\n.B {}\n{}\n", s.status, roff(s.meaning));
    return out;
}

/// "btf-dump": a page's name has no spaces.
std::string page_name(const Command &command) {
    std::string out(command.name);
    for (char &c : out)
        if (c == ' ') c = '-';
    return out;
}

} // namespace

std::string man_page(const Command &command) {
    std::string out = title(format("rawbpf-{}", page_name(command)));
    append(out, ".SH NAME\nrawbpf\\-{} \\- {}\n", roff(page_name(command)), roff(command.summary));
    append(out, ".SH SYNOPSIS\n.B {}\n", roff(synopsis(command)));
    append(out, ".SH DESCRIPTION\n{}", paragraphs(command.description));
    if (!command.options.empty()) out += ".SH OPTIONS\n";
    for (const Option &option : built_options(command)) {
        if (!option.section.empty()) append(out, ".SS {}\n", roff(option.section));
        out += ".TP\n";
        if (option.letter) append(out, "\\fB\\-{}\\fR, ", option.letter);
        append(out, "\\fB\\-\\-{}\\fR", roff(option.name));
        if (!option.argument.empty())
            append(out, "{}\\fI{}\\fR", option.kind == OptionKind::flag ? "" : " ", roff(option.argument));
        append(out, "\n{}", roff(option.help));
        if (!option.choices.empty()) {
            out += ": one of";
            bool first = true;
            for (std::string_view choice : split(option.choices, ' '))
                append(out, "{} \\fB{}\\fR", std::exchange(first, false) ? "" : ",", roff(choice));
        }
        out += ".\n";
        if (option.repeatable) out += "May be repeated.\n";
        if (!option.fallback.empty()) append(out, "Default: \\fB{}\\fR.\n", roff(option.fallback));
    }
    if (!command.options.empty())
        out += ".PP\nA long option may also be written with one dash; its value follows after a space or a \\(oq=\\(cq.\n";
    if (!command.examples.empty()) out += ".SH EXAMPLES\n";
    for (const Example &example : command.examples)
        append(out, ".TP\n\\fB{}\\fR\n{}.\n", roff(example.command), roff(example.what));
    append(out, "{}.SH SEE ALSO\n.BR rawbpf (1)\n", exit_status());
    return out;
}

std::string man_page(const Topic &topic) {
    std::string out = title(format("rawbpf-{}", topic.name), 5);
    append(out, ".SH NAME\nrawbpf\\-{} \\- {}\n", roff(topic.name), roff(topic.summary));
    append(out, ".SH DESCRIPTION\n{}", paragraphs(topic.description));
    for (const Topic::Row &row : topic.rows)
        if (row.form.empty())
            append(out, ".SS {}\n", roff(row.meaning));
        else
            append(out, ".TP\n\\fB{}\\fR\n{}\n", roff(row.form), roff(row.meaning));
    append(out, ".SH EXAMPLE\n.EX\n{}.EE\n.SH SEE ALSO\n.BR rawbpf (1),\n.BR rawbpf\\-run (1)\n", roff(topic.example));
    return out;
}

std::string man_page(std::span<const Command *const> commands) {
    std::string out = title("rawbpf");
    out += ".SH NAME\nrawbpf \\- eBPF tools that call bpf(2) directly\n"
           ".SH SYNOPSIS\n.B rawbpf\n.I COMMAND\n[OPTION]... [ARGUMENT]... [\\-\\- COMMAND [ARG]...]\n"
           ".SH DESCRIPTION\n"
           "Results go to standard output; remarks, progress and the ledger of what was seen, filtered and lost go to standard "
           "error.\n"
           "With \\fB\\-\\- COMMAND\\fR a tool runs a command and ends with it; under\n.BR sudo (8)\nthe command runs as the "
           "invoking user.\n"
           ".SH COMMANDS\n";
    for (const Command *command : commands)
        if (!command->hidden) append(out, ".TP\n.B {}\n{}.\n", roff(command->name), roff(command->summary));
    append(out, "{}.SH SEE ALSO\n", exit_status());
    std::string list;
    for (const Command *command : commands)
        if (!command->hidden && !command->options.empty()) append(list, ".BR rawbpf\\-{} (1),\n", roff(page_name(*command)));
    append(out, "{}.BR bpf (2),\n.BR perf_event_open (2)\n", list);
    return out;
}

} // namespace rawbpf::inline v0::cli
