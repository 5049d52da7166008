// Finds the command for the words of a command line, and calls its function.
//
//      rawbpf [--help | --version | COMMAND ...]
//
// A command's name may have two words (`btf dump`). The first word alone is no command.
//
// Everything that a table can decide is decided here, before a command's function runs: unknown words, wrong values, --help.
#include "cli/commands.h"

#include <memory>

#include "cli/built.h"
#include "cli/console.h"
#include "cli/help.h"
#include "cli/narrator.h"
#include "cli/suggest.h"
#include "programs/render/json_line.h"
#include "programs/render/renderer.h"
#include "runtime/base/format.h"

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

std::vector<const Command *> commands_below(std::string_view first) {
    std::vector<const Command *> below;
    for (const Command *command : all_commands())
        if (!command->hidden && words_of(*command) == 2 && command->name.substr(0, command->name.find(' ')) == first)
            below.push_back(command);
    return below;
}

Error unknown_command(std::span<const std::string_view> words) {
    if (std::optional<Error> left_out = left_out_command(words)) return std::move(*left_out);
    std::vector<std::string_view> names, below;
    const std::string_view first = words.empty() ? std::string_view() : words[0];
    for (const Command *command : all_commands())
        if (!command->hidden) names.push_back(command->name);
    for (const Command *command : commands_below(first)) below.push_back(command->name.substr(first.size() + 1));
    if (!below.empty()) {
        std::string list;
        for (std::string_view word : below) append(list, "{}{} {}", list.empty() ? "" : ", ", first, word);
        const bool more = words.size() >= 2 && !words[1].starts_with('-');
        Suggestion near = more ? nearest(words[1], below) : Suggestion{};
        std::string hint = near.close ? format("did you mean {} {}?\n", first, near.word) : "";
        return make_error(Errc::invalid_argument,
                          more ? format("there is no command {} {}", first, words[1]) : format("{} needs a second word", first),
                          hint + "there is " + list);
    }
    std::string name(first);
    Suggestion near = nearest(name, names);
    std::string hint = near.close ? format("did you mean {}?\n", near.word) : "";
    return make_error(Errc::invalid_argument, format("there is no command {}", name), hint + "rawbpf --help lists the commands");
}

int complain_unknown(std::string_view who, std::span<const std::string_view> words) {
    const Error error = unknown_command(words);
    return complain(who, error, error.kind == Errc::unsupported ? 3 : 2);
}

namespace {

Error no_json(std::string hint) { return make_error(Errc::unsupported, "this build writes no JSON", std::move(hint)); }

// What not every build has: JSON, other tools' formats, differences. --json stands for --format json wherever there is one.
Result<void> check_build_has(const Command &command, const Arguments &arguments) {
    for (size_t i = 0; i < command.options.size(); ++i) {
        const std::string_view name = command.options[i].name;
        if (const Part part = command.options[i].part; !is_built(part) && arguments.has({i}))
            return Unexpected(left_out(part, format("--{}", name)));
        if (!has(Part::unwind) && name == "unwind" && arguments.text({i}) == "dwarf")
            return Unexpected(left_out(Part::unwind, "--unwind dwarf"));
        if (name == "syscalls" && arguments.text({i}) == "json" && !render::writes_json())
            return Unexpected(no_json("--syscalls without =json shows the same as text"));
        if (name == "json" && command.options[i].stands_for.empty() && arguments.has({i}) && !render::writes_json())
            return Unexpected(no_json("build rawbpf with -Djson=enabled (it needs nlohmann-json)"));
        if (name != "format") continue;
        if (const std::string_view word = arguments.text({i}); !has(Part::formats) && (word == "chrome" || word == "protobuf"))
            return Unexpected(left_out(Part::formats, rawbpf::format("-f {}", word)));
        const auto format = render::format_named(arguments.text({i}));
        if (!format) continue;
        if (!has(Part::formats) && render::for_other_tools(*format))
            return Unexpected(left_out(Part::formats, rawbpf::format("-f {}", arguments.text({i}))));
        if (render::is_json(*format) && !render::writes_json())
            return Unexpected(no_json("build rawbpf with -Djson=enabled (it needs nlohmann-json), or use another --format"));
    }
    return {};
}

// --syscalls: of every command that has it, from before its first call to behind its last one.
std::unique_ptr<Narrator> narrate(const Command &command, const Arguments &a) {
    if (!has(Part::syscalls)) return nullptr;
    std::string_view colors = "auto", form;
    bool wanted = false, all = false;
    for (size_t i = 0; i < command.options.size(); ++i) {
        const std::string_view name = command.options[i].name;
        if (name == "syscalls" && a.has({i})) wanted = true, form = a.text({i});
        if (name == "color") colors = a.text({i});
        if (name == "verbose") all = a.has({i});
    }
    if (!wanted) return nullptr;
    const bool json = form == "json";
    return std::make_unique<Narrator>(!json && color_wanted(colors, 2), all, json);
}

} // namespace

int run(std::span<const std::string_view> words) {
    if (words.empty()) {
        say_as_is(help_text(all_commands(), color_wanted("auto", 2)));
        return 2;
    }
    std::string_view first = words[0];
    if (first == "--help" || first == "-h") return print(help_text(all_commands(), color_wanted("auto", 1)));
    const Command *command = first == "--version" || first == "-V" ? &kVersion : find_command(words);
    if (!command) {
        if (words.size() == 2 && (words[1] == "--help" || words[1] == "-h"))
            if (const std::vector<const Command *> below = commands_below(first); !below.empty())
                return print(help_text(first, below, color_wanted("auto", 1)));
        if (!first.starts_with('-')) return complain_unknown("rawbpf", words);
        return complain("rawbpf",
                        make_error(Errc::invalid_argument, format("there is no command before the option {}", first),
                                   "options come after the command: rawbpf profile --freq 99\nrawbpf --help lists the commands"),
                        2);
    }
    Result<Arguments> arguments = Arguments::parse(*command, words.subspan(words_of(*command)));
    std::string who = format("rawbpf {}", command->name);
    if (!arguments) return complain(who, arguments.error(), 2);
    if (arguments->wants_help()) return print(help_text(*command, color_wanted("auto", 1)));
    if (Result<void> built = check_build_has(*command, *arguments); !built) return complain(who, built.error(), 3);
    const std::unique_ptr<Narrator> narrator = narrate(*command, *arguments);
    return command->run(*arguments);
}

} // namespace rawbpf::inline v0::cli
