// `rawbpf completion SHELL`: the script that teaches a shell these options.
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/help.h"

namespace rawbpf::inline v0::cli {
namespace {

constexpr Example kExamples[] = {
    {"source <(rawbpf completion bash)", "for this bash"},
    {"rawbpf completion zsh > ~/.zfunc/_rawbpf", "for every zsh that has ~/.zfunc in its fpath"},
    {"rawbpf completion fish > ~/.config/fish/completions/rawbpf.fish", "for every fish"},
};

} // namespace

const Command kCompletion{
    .name = "completion",
    .summary = "print a completion script for a shell",
    .description = "Prints a script that lets bash, zsh or fish complete rawbpf's commands, options and values.",
    .examples = kExamples,
    .operand = "bash|zsh|fish",
    .least_operands = 1,
    .most_operands = 1,
    .operand_choices = "bash zsh fish",
    .run = [](const Arguments &arguments) { return print(completion_script(arguments.operands()[0], all_commands())); }};

} // namespace rawbpf::inline v0::cli
