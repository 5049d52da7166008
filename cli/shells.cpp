// Completion scripts for bash, zsh and fish, from the tables. Each is self-contained: installed where the shell looks for it, or
//
//      source <(rawbpf completion bash)
//
// Options and choices are known from the tables; files, directories, process ids and programs are left to the shell, since it
// knows how to quote them. Behind `--` stands a command of its own, completed as at a prompt.
#include <algorithm>

#include "asm/helpers.h"
#include "asm/opcodes.h"
#include "cli/built.h"
#include "cli/help.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::cli {
namespace {

using Commands = std::span<const Command *const>;

std::string_view first_word(const Command &command) { return command.name.substr(0, command.name.find(' ')); }
std::string_view second_word(const Command &command) {
    const size_t space = command.name.find(' ');
    return space == std::string_view::npos ? std::string_view() : command.name.substr(space + 1);
}

/// What the first word may be.
std::vector<std::string_view> first_words(Commands commands) {
    std::vector<std::string_view> out;
    for (const Command *command : commands)
        if (!command->hidden && std::find(out.begin(), out.end(), first_word(*command)) == out.end())
            out.push_back(first_word(*command));
    return out;
}
std::string joined(const std::vector<std::string_view> &words) {
    std::string out;
    for (std::string_view word : words) append(out, "{}{}", out.empty() ? "" : " ", word);
    return out;
}
/// What may follow such a word; empty where it is a command by itself.
std::vector<std::string_view> second_words(Commands commands, std::string_view first) {
    std::vector<std::string_view> out;
    for (const Command *command : commands)
        if (!command->hidden && first_word(*command) == first && !second_word(*command).empty())
            out.push_back(second_word(*command));
    return out;
}

/// What a command's operands can be, separated by spaces; empty: anything. `rawbpf help` takes the commands themselves, `helper`
/// and `isa` the names of their tables.
std::string operand_words(Commands commands, const Command &command) {
    if (command.name == "help") return joined(first_words(commands));
    if (has(Part::assembler) && (command.name == "helper" || command.name == "isa")) {
        std::vector<std::string_view> names;
        if (command.name == "helper")
            for (const HelperInfo &helper : all_helpers()) names.push_back(helper.name);
        else
            for (const Form &form : isa::kForms)
                if (!form.name.ends_with("_reg")) names.push_back(form.name); // "add" has both forms
        return joined(names);
    }
    return std::string(command.operand_choices);
}

// ---- bash -----------------------------------------------------------------------------------------------------------------

std::string_view bash_values(OptionKind kind) {
    switch (kind) {
    case OptionKind::file: return "COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2>/dev/null";
    case OptionKind::directory: return "COMPREPLY=($(compgen -d -- \"$cur\")); compopt -o filenames 2>/dev/null";
    case OptionKind::pid:
    case OptionKind::pids: return "COMPREPLY=($(cd /proc && compgen -G '[0-9]*' | grep -- \"^$cur\"))";
    case OptionKind::users: return "COMPREPLY=($(compgen -u -- \"$cur\"))";
    case OptionKind::interface: return "COMPREPLY=($(cd /sys/class/net && compgen -G \"$cur*\"))";
    default: return "COMPREPLY=()";
    }
}

// What rawbpf itself has to be asked. To bash a colon separates words, so it replaces only what stands behind the last one.
constexpr std::string_view kBashWords =
    "_rawbpf_words() {\n"
    "  local whole=${COMP_LINE:0:COMP_POINT}\n"
    "  whole=${whole##*[[:space:]]}\n"
    "  mapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" words \"$1\" \"$whole\" 2>/dev/null)\n"
    "  [[ $COMP_WORDBREAKS != *:* || $whole != *:* ]] || COMPREPLY=(\"${COMPREPLY[@]#\"${whole%:*}:\"}\")\n"
    "  [[ ${COMPREPLY[0]} != *[:/] ]] || compopt -o nospace 2>/dev/null\n"
    "}\n";

std::string bash(Commands commands) {
    std::string out = "# bash completion for rawbpf\n";
    out += kBashWords;
    out += "_rawbpf() {\n"
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i\n"
           "  COMPREPLY=()\n"
           "  if [ \"$COMP_CWORD\" = 1 ]; then\n";
    append(out, "    COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\"))\n    return\n  fi\n",
           joined(first_words(commands)));
    for (std::string_view first : first_words(commands)) {
        const std::vector<std::string_view> seconds = second_words(commands, first);
        if (seconds.empty()) continue;
        append(out,
               "  if [ \"$command\" = {} ]; then\n"
               "    if [ \"$COMP_CWORD\" = 2 ]; then COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return; fi\n"
               "    command=\"$command ${{COMP_WORDS[2]}}\"\n  fi\n",
               first, joined(seconds));
    }
    out += "  for ((i = 2; i < COMP_CWORD; ++i)); do\n"
           "    if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
           "      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else COMPREPLY=($(compgen -c -- "
           "\"$cur\")); fi\n"
           "      return\n    fi\n  done\n"
           "  if [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
           "  if [ \"$cur\" = = ]; then cur=; fi\n"
           "  case $command in\n";
    for (const Command *command : commands) {
        if (command->hidden) continue;
        append(out, "  '{}')\n    case $prev in\n", command->name);
        std::string words = "--help";
        for (const Option &option : built_options(*command)) {
            append(words, " --{}", option.name);
            if (option.kind == OptionKind::flag) continue;
            append(out, "    --{}", option.name);
            if (option.letter) append(out, " | -{}", option.letter);
            if (option.kind == OptionKind::choice)
                append(out, ") COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n", option.choices);
            else
                append(out, ") {}; return ;;\n", bash_values(option.kind));
        }
        append(out, "    esac\n    case $cur in\n    -*) COMPREPLY=($(compgen -W '{}{}' -- \"$cur\")) ;;\n", words,
               command->workload ? " --" : "");
        if (const std::string choices = operand_words(commands, *command); !choices.empty())
            append(out, "    *) COMPREPLY=($(compgen -W '{}' -- \"$cur\")) ;;\n", choices);
        else if (!command->operand_kind.empty())
            append(out, "    *) _rawbpf_words {} ;;\n", command->operand_kind);
        else if (command->operand_is_file)
            append(out, "    *) {} ;;\n", bash_values(OptionKind::file));
        out += "    esac ;;\n";
    }
    out += "  esac\n}\ncomplete -F _rawbpf rawbpf\n";
    return out;
}

// ---- zsh ------------------------------------------------------------------------------------------------------------------

// Inside '...' and inside an _arguments specification: quotes, colons and brackets have meanings.
std::string zsh_text(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\'')
            out += "'\\''";
        else if (c == ':' || c == '[' || c == ']' || c == '\\')
            out += {'\\', c};
        else
            out += c;
    }
    return out;
}

std::string zsh_value(const Option &option) {
    std::string name = zsh_text(option.argument);
    switch (option.kind) {
    case OptionKind::flag: return "";
    case OptionKind::choice: return format(":{}:({})", name, option.choices);
    case OptionKind::file: return format(":{}:_files", name);
    case OptionKind::directory: return format(":{}:_files -/", name);
    case OptionKind::pid:
    case OptionKind::pids: return format(":{}:_pids", name);
    case OptionKind::users: return format(":{}:_users", name);
    case OptionKind::interface: return format(":{}:_net_interfaces", name);
    default: return format(":{}:", name);
    }
}

// Behind the first --, everything is another command's line.
constexpr std::string_view kZshWorkload = "      local -i dashes=${words[(i)--]}\n"
                                          "      if (( dashes < CURRENT )); then\n"
                                          "        shift dashes words; (( CURRENT -= dashes )); _normal; return\n"
                                          "      fi\n";

std::string zsh(Commands commands) {
    std::string out =
        "#compdef rawbpf\n# zsh completion for rawbpf\n_rawbpf() {\n  local context state line\n  typeset -A opt_args\n"
        "  _arguments -C '--help[show help]' '--version[print the version]' '1:command:->command' '*::argument:->argument'\n"
        "  case $state in\n  command)\n    local -a commands=(\n";
    for (std::string_view first : first_words(commands)) {
        const std::vector<std::string_view> seconds = second_words(commands, first);
        std::string about = joined(seconds);
        for (const Command *command : commands)
            if (command->name == first) about = command->summary;
        append(out, "      '{}:{}'\n", first, zsh_text(about));
    }
    out += "    )\n    _describe command commands ;;\n  argument)\n";
    for (std::string_view first : first_words(commands)) {
        const std::vector<std::string_view> seconds = second_words(commands, first);
        if (seconds.empty()) continue;
        append(out,
               "    if [[ $words[1] == {} ]]; then\n"
               "      if (( CURRENT == 2 )); then compadd -- {}; return; fi\n"
               "      shift words; (( CURRENT-- )); words[1]=\"{} $words[1]\"\n    fi\n",
               first, joined(seconds), first);
    }
    out += "    case $words[1] in\n";
    for (const Command *command : commands) {
        if (command->hidden) continue;
        append(out, "    '{}')\n{}      _arguments \\\n        '--help[show help]' \\\n", command->name,
               command->workload ? kZshWorkload : "");
        for (const Option &option : built_options(*command)) {
            std::string_view equals = option.kind == OptionKind::flag ? "" : "=";
            std::string spec = format("[{}]{}' \\\n", zsh_text(option.help), zsh_value(option));
            if (option.letter && !option.repeatable)
                append(out, "        '(-{0} --{1})'{{-{0}{3},--{1}{2}}}'{4}", option.letter, option.name, equals,
                       equals.empty() ? "" : "+", spec);
            else if (option.letter)
                append(out, "        '*'{{-{}{},--{}{}}}'{}", option.letter, equals.empty() ? "" : "+", option.name, equals,
                       spec);
            else
                append(out, "        '{}--{}{}{}", option.repeatable ? "*" : "", option.name, equals, spec);
        }
        if (const std::string choices = operand_words(commands, *command); !choices.empty())
            append(out, "        '1:{}:({})' ;;\n", zsh_text(command->operand), choices);
        else if (!command->operand_kind.empty())
            append(out, "        '1:{}:{{compadd -S \"\" -- ${{(f)\"$(rawbpf words {} \"$PREFIX\" 2>/dev/null)\"}}}}' ;;\n",
                   zsh_text(command->operand), command->operand_kind);
        else if (command->operand_is_file)
            append(out, "        '1:{}:_files' ;;\n", zsh_text(command->operand));
        else
            out += "        && return ;;\n";
    }
    out += "    esac ;;\n  esac\n}\n"
           "# Autoloaded, this file is the function's body; sourced, it registers the function.\n"
           "if [ \"$funcstack[1]\" = _rawbpf ]; then _rawbpf \"$@\"; else compdef _rawbpf rawbpf; fi\n";
    return out;
}

// ---- fish -----------------------------------------------------------------------------------------------------------------

std::string fish_text(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string fish(Commands commands) {
    std::string out = "# fish completion for rawbpf\ncomplete -c rawbpf -f\n";
    append(out, "complete -c rawbpf -n __fish_use_subcommand -l help -d 'Show help'\n"
                "complete -c rawbpf -n __fish_use_subcommand -l version -d 'Print the version'\n");
    for (const Command *command : commands) {
        if (command->hidden) continue;
        const std::string_view first = first_word(*command), second = second_word(*command);
        if (second.empty()) {
            append(out, "complete -c rawbpf -n __fish_use_subcommand -a {} -d '{}'\n", first, fish_text(command->summary));
            continue;
        }
        const std::string seconds = joined(second_words(commands, first));
        append(out, "complete -c rawbpf -n __fish_use_subcommand -a {} -d '{}'\n", first, seconds);
        append(out,
               "complete -c rawbpf -n '__fish_seen_subcommand_from {}; and not __fish_seen_subcommand_from {}' -a {} -d '{}'\n",
               first, seconds, second, fish_text(command->summary));
    }
    for (const Command *command : commands) {
        if (command->hidden) continue;
        const std::string_view second = second_word(*command);
        std::string seen = format("__fish_seen_subcommand_from {}", first_word(*command));
        if (!second.empty()) append(seen, "; and __fish_seen_subcommand_from {}", second);
        std::string when = format("complete -c rawbpf -n '{}'", seen);
        for (const Option &option : built_options(*command)) {
            append(out, "{} -l {}", when, option.name);
            if (option.letter) append(out, " -s {}", option.letter);
            switch (option.kind) {
            case OptionKind::flag: break;
            case OptionKind::choice: append(out, " -x -a '{}'", option.choices); break;
            case OptionKind::file: out += " -r -F"; break;
            case OptionKind::directory: out += " -x -a '(__fish_complete_directories)'"; break;
            case OptionKind::pid:
            case OptionKind::pids: out += " -x -a '(__fish_complete_pids)'"; break;
            case OptionKind::users: out += " -x -a '(__fish_complete_users)'"; break;
            case OptionKind::interface: out += " -x -a '(__fish_print_interfaces)'"; break;
            default: out += " -x";
            }
            append(out, " -d '{}'\n", fish_text(option.help));
        }
        if (const std::string choices = operand_words(commands, *command); !choices.empty())
            append(out, "{} -a '{}'\n", when, choices);
        if (!command->operand_kind.empty())
            append(out, "{} -a '(rawbpf words {} (commandline -ct) 2>/dev/null)'\n", when, command->operand_kind);
        if (command->operand_is_file) append(out, "{} -F\n", when);
        if (command->workload)
            append(out,
                   "complete -c rawbpf -n '{}; and contains -- -- (commandline -opc)' -x -a "
                   "'(complete -C (string replace -r \"^.*? -- \" \"\" -- (commandline -cp)))'\n",
                   seen);
    }
    return out;
}

} // namespace

std::string completion_script(std::string_view shell, Commands commands) {
    if (shell == "bash") return bash(commands);
    if (shell == "zsh") return zsh(commands);
    if (shell == "fish") return fish(commands);
    return {};
}

} // namespace rawbpf::inline v0::cli
