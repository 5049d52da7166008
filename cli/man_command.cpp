// `rawbpf man [COMMAND]`: a man page in roff, as the build installs it; with --markdown a page for the web. Hidden from the list
// of commands: people call man(1).
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Option kOptions[] = {{.name = "markdown", .help = "the page of a command in Markdown"}};
consteval Id option(const char *name) { return find(kOptions, name); }

int run_man(const Arguments &arguments) {
    const bool markdown = arguments.has(option("markdown"));
    if (arguments.operands().empty()) {
        if (markdown)
            return complain("rawbpf man",
                            make_error(Errc::invalid_argument, "--markdown takes a COMMAND", "rawbpf man --markdown profile"), 2);
        return print(man_page(all_commands()));
    }
    if (const Topic *topic = markdown ? nullptr : find_topic(arguments.operands())) return print(man_page(*topic));
    if (const Command *command = find_command(arguments.operands()))
        return print(markdown ? markdown_page(*command) : man_page(*command));
    return complain_unknown("rawbpf man", arguments.operands());
}

} // namespace

const Command kMan{.name = "man",
                   .summary = "print a man page",
                   .description =
                       "Prints the man page of rawbpf, of one of its commands, or of the language of experiments, in roff: "
                       "rawbpf man profile | man -l -",
                   .options = kOptions,
                   .operand = "COMMAND|experiment",
                   .most_operands = 2,
                   .hidden = true,
                   .run = run_man};

} // namespace rawbpf::inline v0::cli
