// The command line's grammar: one constexpr table a command, from which parsing, --help, the man pages and the shells'
// completions are made. Nothing about an option stands anywhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/has_manual.h"
#include "cli/parts.h"
#include "runtime/base/result.h"

namespace rawbpf::inline v0::cli {

/// What an option's value is: how it is checked, and how a shell completes it.
enum class OptionKind : uint8_t {
    flag,      ///< takes no value
    text,      ///< anything
    count,     ///< a whole number from `least` to `most`
    seconds,   ///< "3", "0.5", "10us", "200ms", "5s", "2m", "1h"
    choice,    ///< one of `choices`
    file,      ///< a path; "-" for standard input or output where the help says so
    directory, ///< a path
    pid,       ///< a process id
    pids,      ///< process ids, separated by commas
    tids,      ///< thread ids, likewise
    users,     ///< user ids or names, likewise
    cpus,      ///< a list as the kernel writes it: "0-3,8"
    interface, ///< a network interface
};

/// Words for people that aren't part of the grammar: empty in a build without the part `manual`, and not in its file either.
struct ManualWords : std::string_view {
    constexpr ManualWords() = default;
    constexpr ManualWords(std::string_view words) : std::string_view(RAWBPF_HAS_MANUAL ? words : std::string_view()) {}
    constexpr ManualWords(const char *words) : ManualWords(std::string_view(words)) {}
};

/// One option, one row of a table.
struct Option {
    std::string_view name; ///< long spelling, without "--"
    char letter = 0;       ///< short spelling, 0: none
    OptionKind kind = OptionKind::flag;
    bool repeatable = false;          ///< all values count; else the last one does
    bool written = false;             ///< what is written to: no other file of the command line, an operand neither, may be it
    std::string_view argument = {};   ///< what the value is called in help: "HZ"; of a flag "[=json]", if it may be given a word
    ManualWords help = {};            ///< one or two sentences, no full stop at the end of one
    std::string_view section = {};    ///< heading in help; empty: that of the row above
    std::string_view fallback = {};   ///< the value when the option isn't given, shown in help; empty: none
    std::string_view choices = {};    ///< for OptionKind::choice, separated by spaces
    std::string_view excludes = {};   ///< name of a group; at most one option of a group may be given
    std::string_view stands_for = {}; ///< a flag that is short for another option with a value: "format=json"
    std::string_view was = {};        ///< earlier spellings, which still work and which nothing shows: "count c"
    std::string_view only_with =
        {};                 ///< means something only with another option, "list", or with it at one of these: "format=svg top"
    Part part = Part::core; ///< a build without it has no such option
    uint64_t least = 0, most = UINT64_MAX;
};

struct Example {
    ManualWords command; ///< as typed, without a prompt
    ManualWords what;    ///< what it does
};

class Arguments;
struct Command;

/// The rows of its table that this build has (built.h), each with its own heading only where the one above has another.
[[nodiscard]] std::vector<Option> built_options(const Command &command);

/// One command: its table, its words, and the function that carries it out.
struct Command {
    std::string_view name;
    std::string_view summary; ///< one clause, for the list of commands
    ManualWords description;  ///< paragraphs separated by "\n\n"
    std::span<const Option> options = {};
    std::span<const Example> examples = {};
    std::string_view operand = {}; ///< what an operand is called; empty: takes none
    size_t least_operands = 0, most_operands = 0;
    std::string_view operand_choices = {}; ///< separated by spaces; empty: anything
    bool operand_is_file = false;
    /// `rawbpf words KIND PREFIX` lists what the first operand may be: "programs", "probes". Completions ask it.
    std::string_view operand_kind = {};
    bool workload = false;                   ///< takes `-- COMMAND [ARG]...`
    bool hidden = false;                     ///< not in the list of commands
    int (*run)(const Arguments &) = nullptr; ///< returns the exit status
};

/// An option's place in its command's table.
struct Id {
    size_t index;
};

/// The option of that name, or it doesn't compile: `consteval Id option(const char *name) { return find(kOptions, name); }`. A
/// std::string_view there is no constant to g++ 16 in `for (auto x : a.all(option("pid")))`: C++23 keeps it alive.
template <size_t N> consteval Id find(const Option (&table)[N], std::string_view name) {
    for (size_t i = 0; i < N; ++i)
        if (table[i].name == name) return Id{i};
    __builtin_abort(); // not a constant expression: the compiler stops here
}

/// What was given on a command line, checked against the table.
class Arguments {
  public:
    /// Parses what follows the command's name. Errors: invalid_argument with a message that names the option, the value and what
    /// was expected, and a hint with the nearest spelling. `--help` stops the parsing and sets wants_help().
    [[nodiscard]] static Result<Arguments> parse(const Command &command, std::span<const std::string_view> words);

    [[nodiscard]] const Command &command() const { return *command_; }
    [[nodiscard]] bool wants_help() const { return wants_help_; }
    /// Whether the option was given.
    [[nodiscard]] bool has(Id option) const { return !values_[option.index].empty(); }
    /// The last value given, or the fallback.
    [[nodiscard]] std::string_view text(Id option) const;
    /// Every value given, those of lists split at commas.
    [[nodiscard]] std::vector<std::string_view> all(Id option) const;
    [[nodiscard]] uint64_t count(Id option) const;        ///< OptionKind::count; 0 without value and fallback
    [[nodiscard]] double seconds(Id option) const;        ///< OptionKind::seconds; 0 without value and fallback
    [[nodiscard]] int pid(Id option) const;               ///< OptionKind::pid; 0: none was given
    [[nodiscard]] std::vector<int> pids(Id option) const; ///< OptionKind::pids and tids
    /// OptionKind::users. Errors: invalid_argument when /etc/passwd no longer has a name that it had.
    [[nodiscard]] Result<std::vector<uint32_t>> users(Id option) const;
    [[nodiscard]] const std::vector<std::string_view> &operands() const { return operands_; }
    [[nodiscard]] const std::vector<std::string> &workload() const { return workload_; } ///< what stands behind --
    [[nodiscard]] const std::vector<std::string> &words() const { return words_; }       ///< everything, as typed

  private:
    [[nodiscard]] Result<void> take(size_t option, const std::string &spelling, std::string_view value);
    [[nodiscard]] Result<void> check_pairs() const;
    [[nodiscard]] Result<void> check_short_forms(size_t option) const;
    [[nodiscard]] Result<void> check_only_with(size_t option) const;
    [[nodiscard]] Result<void> check_written(size_t option) const;

    const Command *command_ = nullptr;
    bool wants_help_ = false;
    struct Given {
        std::string spelling; ///< as on the command line, for messages
        std::string_view value;
        bool implied = false; ///< by a flag that stands for it, which is the spelling
    };
    std::vector<std::vector<Given>> values_; ///< by option
    std::vector<std::string_view> operands_;
    std::vector<std::string> workload_, words_;
};

/// Cuts at every `separator`; empty parts are left out.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

} // namespace rawbpf::inline v0::cli
