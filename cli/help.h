// What is made from the tables: --help, man pages, pages in Markdown, completions. All PURE: text out, nothing else.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/options.h"

namespace rawbpf::inline v0::cli {

/// Text wrapped to `width` columns; lines after the first are indented by `indent`. Paragraphs are separated by "\n\n".
[[nodiscard]] std::string wrapped(std::string_view text, size_t width, size_t indent);

/// "rawbpf profile [OPTION]... [-- COMMAND [ARG]...]"
[[nodiscard]] std::string synopsis(const Command &command);
/// What `rawbpf COMMAND --help` prints, at most 80 columns. `bold`: headings for a terminal.
[[nodiscard]] std::string help_text(const Command &command, bool bold = false);
/// What `rawbpf --help` prints.
[[nodiscard]] std::string help_text(std::span<const Command *const> commands, bool bold = false);
/// Of the commands with this first word, such as "map".
[[nodiscard]] std::string help_text(std::string_view group, std::span<const Command *const> commands, bool bold = false);

/// rawbpf-COMMAND.1 in roff (the man macros of groff and mandoc).
[[nodiscard]] std::string man_page(const Command &command);
/// rawbpf.1.
[[nodiscard]] std::string man_page(std::span<const Command *const> commands);
/// The page of one command in Markdown.
[[nodiscard]] std::string markdown_page(const Command &command);

/// A completion script for "bash", "zsh" or "fish"; empty for another shell.
[[nodiscard]] std::string completion_script(std::string_view shell, std::span<const Command *const> commands);

/// A page about something that isn't a command.
struct Topic {
    std::string_view name, summary, description; ///< as a command's
    struct Row {
        std::string_view form; ///< empty: `meaning` is a heading
        std::string_view meaning;
    };
    std::span<const Row> rows;
    std::string_view example; ///< lines
};
/// The language of `rawbpf run`.
extern const Topic kExperimentTopic;
/// By its name, where this build has what it is about. nullptr: there is none.
[[nodiscard]] const Topic *find_topic(std::span<const std::string_view> words);
/// What `rawbpf help TOPIC` prints.
[[nodiscard]] std::string help_text(const Topic &topic, bool bold = false);
/// rawbpf-TOPIC.5 in roff.
[[nodiscard]] std::string man_page(const Topic &topic);

/// What each exit status means, in the order of the numbers.
struct ExitStatus {
    int status;
    std::string_view meaning;
};
inline constexpr ExitStatus kExitStatuses[] = {
    {0, "done"},
    {1, "failed"},
    {2, "wrong usage"},
    {3, "this kernel, this build or these privileges can't do it; the message says which, and what would"},
    {4, "an expectation did not hold: of an experiment, lab check, exec --both or compare --expect-same"},
};

} // namespace rawbpf::inline v0::cli
