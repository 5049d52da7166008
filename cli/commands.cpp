// Finds the command for the words of a command line, and calls its function.
//
//      rawbpf [--help | --version | COMMAND ...]
//
// A command's name may have two words (`btf dump`). The first word alone is no command.
//
// Everything that a table can decide is decided here, before a command's function runs: unknown words, wrong values, --help.
#include "cli/commands.h"

#include "cli/console.h"
#include "cli/help.h"
#include "cli/lab.h"
#include "cli/suggest.h"
#include "programs/render/json_line.h"

namespace rawbpf::inline v0::cli {

const Command *find_command(std::string_view name) {
    for (const Command *command : all_commands())
        if (command->name == name) return command;
    return nullptr;
}

const Command *find_command(std::span<const std::string_view> words) {
    if (words.size() >= 2)
        if (const Command *command = find_command(format("{} {}", words[0], words[1]))) return command;
    return words.empty() ? nullptr : find_command(words[0]);
}

size_t words_of(const Command &command) { return command.name.find(' ') == std::string_view::npos ? 1 : 2; }

Error unknown_command(std::span<const std::string_view> words) {
    std::vector<std::string_view> names, below;
    const std::string_view first = words.empty() ? std::string_view() : words[0];
    for (const Command *command : all_commands()) {
        if (command->hidden) continue;
        names.push_back(command->name);
        if (words_of(*command) == 2 && command->name.substr(0, command->name.find(' ')) == first)
            below.push_back(command->name.substr(first.size() + 1));
    }
    if (!below.empty()) {
        std::string list;
        for (std::string_view word : below) append(list, "{}{} {}", list.empty() ? "" : ", ", first, word);
        const bool more = words.size() >= 2 && !words[1].starts_with('-');
        Suggestion near = more ? nearest(words[1], below) : Suggestion{};
        std::string hint = near.close ? format("did you mean {} {}?\n", first, near.word) : "";
        return make_error(Errc::invalid_argument,
                          more ? format("there is no command {} {}", first, words[1]) : format("{} what?", first),
                          hint + "there is " + list);
    }
    std::string name(first);
    Suggestion near = nearest(name, names);
    std::string hint = near.close ? format("did you mean {}?\n", near.word) : "";
    return make_error(Errc::invalid_argument, format("there is no command {}", name), hint + "rawbpf --help lists the commands");
}

namespace {

// What of a command line not every build or executable has. --json stands for --format json wherever there is one.
struct Asks {
    bool json = false, lab = false;
};
Asks what_is_asked(const Command &command, const Arguments &arguments) {
    Asks out;
    out.lab = command.operands_in_lab && !arguments.operands().empty();
    if (!kHasLab && command.needs_lab) out.lab = out.lab || command.needs_lab(arguments);
    for (size_t i = 0; i < command.options.size(); ++i) {
        out.lab = out.lab || (command.options[i].in_lab && arguments.has({i}));
        if (command.options[i].name != "format") continue;
        if (const auto format = render::format_named(arguments.text({i}))) {
            out.json = render::is_json(*format);
            out.lab = out.lab || render::in_lab(*format);
        }
    }
    return out;
}

} // namespace

int run(std::span<const std::string_view> words) {
    if (std::optional<int> status = pass_to_lab(words)) return *status;
    if (words.empty()) {
        say_as_is(help_text(all_commands(), color_wanted("auto", 2)));
        return 2;
    }
    std::string_view first = words[0];
    if (first == "--help" || first == "-h") return print(help_text(all_commands(), color_wanted("auto", 1)));
    const Command *command = first == "--version" || first == "-V" ? &kVersion : find_command(words);
    if (!command) {
        if (!first.starts_with('-')) return complain("rawbpf", unknown_command(words), 2);
        return complain(
            "rawbpf",
            make_error(Errc::invalid_argument, format("there is no option {} here", first),
                       "options stand behind the command: rawbpf profile --freq 99\nrawbpf --help lists the commands"),
            2);
    }
    Result<Arguments> arguments = Arguments::parse(*command, words.subspan(words_of(*command)));
    std::string who = format("rawbpf {}", command->name);
    if (!arguments) return complain(who, arguments.error(), 2);
    if (arguments->wants_help()) return print(help_text(*command, color_wanted("auto", 1)));
    const Asks asks = what_is_asked(*command, *arguments);
    if (asks.lab && !kHasLab) return become_lab(words);
    if (asks.json && !render::writes_json())
        return complain(who,
                        make_error(Errc::unsupported, "this build writes no JSON",
                                   "build rawbpf with -Djson=enabled (it needs nlohmann-json), or use another --format"),
                        3);
    return command->run(*arguments);
}

} // namespace rawbpf::inline v0::cli
