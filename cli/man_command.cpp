// `rawbpf man [COMMAND]`: a man page in roff, as the build installs it. Hidden from the list of commands: people call man(1).
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"

namespace rawbpf::inline v0::cli {
namespace {

int run_man(const Arguments &arguments) {
    if (arguments.operands().empty()) return print(man_page(all_commands()));
    if (const Command *command = find_command(arguments.operands())) return print(man_page(*command));
    return complain("rawbpf man", unknown_command(arguments.operands()), 2);
}

} // namespace

const Command kMan{.name = "man",
                   .summary = "print a man page",
                   .description =
                       "Prints the man page of rawbpf, or of one of its commands, in roff: rawbpf man profile | man -l -",
                   .operand = "COMMAND",
                   .most_operands = 2,
                   .hidden = true,
                   .run = run_man};

} // namespace rawbpf::inline v0::cli
