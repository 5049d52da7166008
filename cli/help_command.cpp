// `rawbpf help [COMMAND]`: the same text as --help, for those who look for it there.
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/suggest.h"

namespace rawbpf::inline v0::cli {
namespace {

int run_help(const Arguments &arguments) {
    bool bold = color_wanted("auto", 1);
    if (arguments.operands().empty()) return print(help_text(all_commands(), bold));
    if (const Topic *topic = find_topic(arguments.operands())) return print(help_text(*topic, bold));
    if (const Command *command = find_command(arguments.operands())) return print(help_text(*command, bold));
    if (arguments.operands().size() == 1)
        if (const std::vector<const Command *> below = commands_below(arguments.operands()[0]); !below.empty())
            return print(help_text(arguments.operands()[0], below, bold));
    return complain_unknown("rawbpf help", arguments.operands());
}

} // namespace

const Command kHelp{.name = "help",
                    .summary = "explain rawbpf, one of its commands, or the language of experiments",
                    .description =
                        "Explains rawbpf, or one of its commands: the same text as --help prints. rawbpf help experiment "
                        "explains the language of rawbpf run.",
                    .operand = "COMMAND|experiment",
                    .most_operands = 2,
                    .run = run_help};

} // namespace rawbpf::inline v0::cli
