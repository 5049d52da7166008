// The list of commands, and the way from the words of a command line to the function of one.
//
//      rawbpf [--help | --version | COMMAND ...]
//
// Everything that a table can decide is decided here, before a command's function runs: unknown words, wrong values, --help.
#include "cli/commands.h"

#include "cli/console.h"
#include "cli/help.h"
#include "cli/suggest.h"

namespace rawbpf::inline v0::cli {

std::span<const Command *const> all_commands() {
    static constexpr const Command *commands[] = {&kProfile, &kReport, &kDoctor, &kCompletion, &kHelp, &kVersion, &kMan};
    return commands;
}

const Command *find_command(std::string_view name) {
    for (const Command *command : all_commands())
        if (command->name == name) return command;
    return nullptr;
}

Error unknown_command(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Command *command : all_commands())
        if (!command->hidden) names.push_back(command->name);
    Suggestion near = nearest(name, names);
    std::string hint = near.close ? format("did you mean {}?\n", near.word) : "";
    return make_error(Errc::invalid_argument, format("there is no command {}", name), hint + "rawbpf --help lists the commands");
}

int run(std::span<const std::string_view> words) {
    if (words.empty()) {
        say(help_text(all_commands(), color_wanted("auto", 2)));
        return 2;
    }
    std::string_view first = words[0];
    if (first == "--help" || first == "-h") return print(help_text(all_commands(), color_wanted("auto", 1)));
    const Command *command = first == "--version" || first == "-V" ? &kVersion : find_command(first);
    if (!command) {
        if (!first.starts_with('-')) return complain("rawbpf", unknown_command(first), 2);
        return complain(
            "rawbpf",
            make_error(Errc::invalid_argument, format("there is no option {} here", first),
                       "options stand behind the command: rawbpf profile --freq 99\nrawbpf --help lists the commands"),
            2);
    }
    Result<Arguments> arguments = Arguments::parse(*command, words.subspan(1));
    std::string who = format("rawbpf {}", command->name);
    if (!arguments) return complain(who, arguments.error(), 2);
    if (arguments->wants_help()) return print(help_text(*command, color_wanted("auto", 1)));
    return command->run(*arguments);
}

} // namespace rawbpf::inline v0::cli
