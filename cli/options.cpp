// Parsing, driven by the tables.
//
//      --freq=99   --freq 99   -F99   -F 99   -freq 99   -freq=99       one option, six spellings
//      -qv         --json                                                a cluster of flags; a flag that stands for -f json
//      --          all that follows is the command to run
//
// A long name behind a single dash is the same option, as in Go's programs, so `-pid 7` is a process and not `-p id`. A value
// is checked against its row when it is parsed: the result is always valid, and a message can name the option as it was typed.
// A word that starts with '-' is never a value, because a forgotten value is far more common than a file called "-x"; write
// `--output=-x` for such a file. The exception is a negative number, which is refused as a number.
#include "cli/options.h"

#include <algorithm>
#include <utility>

#include "cli/built.h"
#include "cli/suggest.h"
#include "cli/users.h"
#include "runtime/base/fail.h"
#include "runtime/base/hex.h"
#include "runtime/base/numbers.h"
#include "runtime/sys/cpus.h"

namespace rawbpf::inline v0::cli {
namespace {

template <class... Args> Unexpected usage(std::string hint, fmt::format_string<Args...> text, Args &&...args) {
    std::string context;
    vformat_to(context, text, fmt::make_format_args(args...));
    return Unexpected(make_error(Errc::invalid_argument, std::move(context), std::move(hint)));
}

std::string joined(std::string_view words, std::string_view between) {
    std::string out;
    for (std::string_view word : split(words, ' ')) append(out, "{}{}", out.empty() ? "" : between, word);
    return out;
}

bool is_path(OptionKind kind) { return kind == OptionKind::file || kind == OptionKind::directory; }
bool is_list(OptionKind kind) { return kind == OptionKind::pids || kind == OptionKind::tids || kind == OptionKind::users; }

// What a flag may be given behind '='.
std::string_view optional_word(const Option &flag) { return flag.argument.substr(2, flag.argument.size() - 3); }

constexpr double kMostSeconds = 1e9; // 31 years: as nanoseconds, with a clock's reading added, it fits into 63 bits

// An option as messages name it: as typed, with its long name where that was a letter.
std::string shown(const Option &option, const std::string &spelling) {
    return spelling.size() == 2 ? format("{} (--{})", spelling, option.name) : spelling;
}

// A row's check; the message starts with the option.
Result<void> check_value(const Option &option, std::string_view spelling, std::string_view value) {
    switch (option.kind) {
    case OptionKind::flag:
    case OptionKind::text:
    case OptionKind::interface: break;
    case OptionKind::file:
    case OptionKind::directory:
        if (value.empty()) return usage("", "{}: the path is empty", spelling);
        break;
    case OptionKind::count: {
        uint64_t n = 0;
        const bool fits = parse_whole(value, n), digits = is_number(value);
        if (!fits && !digits)
            return usage("", "{}: '{}' isn't a whole number ({} is expected)", spelling, value, option.argument);
        if (fits && n < option.least) return usage("", "{}: {} is below {}, the least that works", spelling, value, option.least);
        if (!fits || n > option.most) return usage("", "{}: {} is above {}, the most that works", spelling, value, option.most);
        break;
    }
    case OptionKind::seconds:
        if (Result<double> seconds = parse_seconds(value); !seconds)
            return usage("", "{}: {}", spelling, seconds.error().context);
        else if (*seconds <= 0)
            return usage("", "{}: {} is no time at all", spelling, value);
        else if (*seconds < 1e-9)
            return usage("", "{}: {} is less than a nanosecond", spelling, value);
        else if (*seconds > kMostSeconds)
            return usage("", "{}: {} is above {:.0f} s, the most that works", spelling, value, kMostSeconds);
        break;
    case OptionKind::choice: {
        std::vector<std::string_view> choices = split(option.choices, ' ');
        if (std::find(choices.begin(), choices.end(), value) != choices.end()) break;
        Suggestion near = nearest(value, choices);
        return usage(near.close ? format("did you mean {}?", near.word) : "", "{}: '{}' isn't one of {}", spelling, value,
                     joined(option.choices, ", "));
    }
    case OptionKind::pid:
        if (int pid = 0; !parse_whole(value, pid) || pid <= 0)
            return usage("", "{}: '{}' isn't a process id (a whole number from 1)", spelling, value);
        break;
    case OptionKind::pids:
    case OptionKind::tids: {
        const std::string_view what = option.kind == OptionKind::pids ? "process" : "thread";
        if (split(value, ',').empty()) return usage("", "{}: a {} id is expected", spelling, what);
        for (std::string_view part : split(value, ',')) {
            int id = 0;
            if (!parse_whole(part, id) || id <= 0)
                return usage("", "{}: '{}' isn't a {} id (a whole number from 1)", spelling, part, what);
        }
        break;
    }
    case OptionKind::users:
        if (Result<std::vector<uint32_t>> users = parse_users(value); !users)
            return usage("", "{}: {}", spelling, users.error().context);
        break;
    case OptionKind::cpus:
        if (Result<std::vector<int>> cpus = parse_cpu_list(value); !cpus)
            return usage("a list looks like 0-3,8", "{}: {}", spelling, cpus.error().context);
        break;
    }
    return {};
}

// Every spelling of every option, for the search of the nearest.
std::vector<std::string_view> long_names(std::span<const Option> options) {
    std::vector<std::string_view> names{"help"};
    for (const Option &option : options) names.push_back(option.name);
    return names;
}

Unexpected unknown_option(const Command &command, std::string_view word) {
    std::string_view bare = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    bare = bare.substr(0, bare.find('='));
    std::vector<std::string_view> names = long_names(command.options);
    Suggestion near = nearest(bare, names);
    std::string hint = near.close ? format("did you mean --{}?", near.word) : format("the nearest option is --{}", near.word);
    append(hint, "\nrawbpf {} --help lists them all", command.name);
    return usage(hint, "unknown option {}", word.substr(0, word.find('=')));
}

// "./a//b" and "a/b" are one file. What links lead to isn't asked: nothing here looks at files.
std::string same_path(std::string_view path) {
    std::string out = path.starts_with('/') ? "/" : "";
    for (const std::string_view part : split(path, '/')) {
        if (part == ".") continue;
        if (!out.empty() && out.back() != '/') out += '/';
        out += part;
    }
    return out;
}

// No option is a digit, so this is the value of the option before it (-d -1), or an operand.
bool is_negative(std::string_view word) {
    return word.size() >= 2 && word[0] == '-' && ((word[1] >= '0' && word[1] <= '9') || word[1] == '.');
}

constexpr size_t kNone = SIZE_MAX;

size_t was(std::span<const Option> options, std::string_view spelling) {
    for (size_t i = 0; i < options.size(); ++i)
        for (const std::string_view earlier : split(options[i].was, ' '))
            if (earlier == spelling) return i;
    return kNone;
}
size_t with_name(std::span<const Option> options, std::string_view name) {
    for (size_t i = 0; i < options.size(); ++i)
        if (options[i].name == name) return i;
    return was(options, name);
}
size_t with_letter(std::span<const Option> options, char letter) {
    for (size_t i = 0; i < options.size(); ++i)
        if (options[i].letter == letter) return i;
    return was(options, std::string_view(&letter, 1));
}

} // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (!text.empty()) {
        size_t end = std::min(text.find(separator), text.size());
        if (end > 0) parts.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

Result<void> Arguments::take(size_t option, const std::string &spelling, std::string_view value) {
    const Option &row = command_->options[option];
    if (!row.stands_for.empty()) { // --json is -f json
        size_t equals = row.stands_for.find('=');
        size_t target = with_name(command_->options, row.stands_for.substr(0, equals));
        values_[target].push_back({spelling, row.stands_for.substr(equals + 1), true});
    }
    TRY(check_value(row, shown(row, spelling), value));
    values_[option].push_back({spelling, value});
    return {};
}

// What two options say together. The tables have all of it: each rule holds for every command.
Result<void> Arguments::check_pairs() const {
    std::span<const Option> options = command_->options;
    for (size_t i = 0; i < options.size(); ++i) {
        if (!has({i})) continue;
        for (size_t j = i + 1; j < options.size(); ++j)
            if (!options[i].excludes.empty() && options[i].excludes == options[j].excludes && has({j}))
                return usage("", "{} and {} exclude each other", values_[i].back().spelling, values_[j].back().spelling);
        TRY(check_short_forms(i));
        TRY(check_only_with(i));
        TRY(check_written(i));
    }
    return {};
}

// --json -f top: given twice the last one counts, but who writes a short form and something else means both.
Result<void> Arguments::check_short_forms(size_t option) const {
    const auto typed = [](const Given &given) {
        return given.implied ? given.spelling : format("{} {}", given.spelling, given.value);
    };
    for (const Given &one : values_[option])
        for (const Given &other : values_[option])
            if (one.implied && one.value != other.value)
                return usage("leave one of them out", "{} and {} exclude each other", typed(one), typed(other));
    return {};
}

Result<void> Arguments::check_only_with(size_t option) const {
    const Option &row = command_->options[option];
    if (row.only_with.empty()) return {};
    const size_t equals = row.only_with.find('=');
    const size_t about = with_name(command_->options, row.only_with.substr(0, equals));
    if (equals == std::string_view::npos) {
        if (has({about})) return {};
        return usage(format("--{}, or leave {} out", row.only_with, values_[option].back().spelling), "{} is about --{}",
                     values_[option].back().spelling, row.only_with);
    }
    const std::string_view now = text({about});
    const std::vector<std::string_view> wanted = split(row.only_with.substr(equals + 1), ' ');
    if (std::find(wanted.begin(), wanted.end(), now) != wanted.end()) return {};
    const std::string_view name = command_->options[about].name;
    return usage(format("--{} {}, or leave {} out", name, wanted[0], values_[option].back().spelling),
                 "{} is about --{} {}, and not {}", values_[option].back().spelling, name,
                 joined(row.only_with.substr(equals + 1), ", "), now);
}

// Two that write to one file, or one that writes to what another reads.
Result<void> Arguments::check_written(size_t option) const {
    const std::span<const Option> options = command_->options;
    if (!options[option].written) return {};
    const Given &out = values_[option].back();
    const std::string place = same_path(out.value);
    if (place == "-" || place.starts_with("/dev/")) return {}; // nothing that is there is lost in these
    for (size_t i = 0; i < options.size(); ++i) {
        if (i == option || (options[i].kind != OptionKind::file && !options[i].written)) continue;
        for (const Given &other : values_[i])
            if (same_path(other.value) == place)
                return usage("one of them needs another name", "{} and {} name the same file, {}", out.spelling, other.spelling,
                             out.value);
    }
    if (!command_->operand_is_file) return {};
    for (const std::string_view operand : operands_)
        if (same_path(operand) == place)
            return usage("another name", "{}: {} is what is read, and would be written over", out.spelling, out.value);
    return {};
}

std::vector<Option> built_options(const Command &command) {
    std::vector<Option> out;
    std::string_view section;
    for (const Option &option : command.options) {
        if (!option.section.empty()) section = option.section;
        if (!is_built(option.part)) continue;
        out.push_back(option);
        out.back().section = std::exchange(section, {});
    }
    return out;
}

Result<Arguments> Arguments::parse(const Command &command, std::span<const std::string_view> words) {
    Arguments out;
    out.command_ = &command;
    out.values_.resize(command.options.size());
    out.words_.assign(words.begin(), words.end());
    std::span<const Option> options = command.options;

    for (size_t at = 0; at < words.size(); ++at) {
        std::string_view word = words[at];
        if (word == "--") {
            if (!command.workload && command.operand.empty()) return usage("", "unexpected --: there is no command to run here");
            std::span<const std::string_view> rest = words.subspan(at + 1);
            if (!command.workload) {
                out.operands_.insert(out.operands_.end(), rest.begin(), rest.end());
            } else {
                if (rest.empty()) return usage("", "a command to run is missing behind --");
                out.workload_.assign(rest.begin(), rest.end());
            }
            break;
        }
        const bool number = !command.workload && !command.operand.empty() && is_negative(word); // map set limits 0 -1
        if (word.size() < 2 || word.front() != '-' || number) {
            out.operands_.push_back(word);
            continue;
        }
        if (word == "--help" || word == "-h" || word == "-help") {
            out.wants_help_ = true;
            return out;
        }
        // The value behind '=', or the next word.
        size_t equals = word.find('=');
        auto take_word = [&](size_t option, const std::string &spelling) -> Result<void> {
            const Option &row = options[option];
            if (row.kind == OptionKind::flag) {
                if (equals == word.npos) return out.take(option, spelling, "");
                const std::string_view value = word.substr(equals + 1);
                if (row.argument.empty()) return usage("", "{} takes no value, but was given '{}'", spelling, value);
                if (value != optional_word(row))
                    return usage("", "{}: '{}' isn't {}, the only word that it may be given", spelling, value,
                                 optional_word(row));
                return out.take(option, spelling, value);
            }
            if (equals != word.npos) return out.take(option, spelling, word.substr(equals + 1));
            bool present = at + 1 < words.size() && (words[at + 1].size() < 2 || words[at + 1].front() != '-' ||
                                                     (!is_path(row.kind) && is_negative(words[at + 1])));
            if (!present && row.kind == OptionKind::choice)
                return usage("", "{} needs a value: one of {}", shown(row, spelling), joined(row.choices, ", "));
            if (!present) return usage("", "{} needs a value: {}", shown(row, spelling), row.argument);
            return out.take(option, spelling, words[++at]);
        };
        std::string spelling(word.substr(0, equals));
        bool double_dash = word.starts_with("--");
        size_t named = with_name(options, std::string_view(spelling).substr(double_dash ? 2 : 1));
        if (named != kNone) {
            TRY(take_word(named, spelling));
            continue;
        }
        if (double_dash) return unknown_option(command, word);
        // A cluster: flags, and at most one option with a value, which ends it.
        for (size_t i = 1; i < word.size(); ++i) {
            size_t option = with_letter(options, word[i]);
            if (option == kNone) return unknown_option(command, word);
            std::string letter{'-', word[i]};
            std::string_view rest = word.substr(i + 1);
            if (options[option].kind == OptionKind::flag) {
                if (rest.starts_with('=')) return usage("", "{} takes no value, but was given '{}'", letter, rest.substr(1));
                TRY(out.take(option, letter, ""));
                continue;
            }
            if (rest.empty()) {
                TRY(take_word(option, letter));
            } else {
                TRY(out.take(option, letter, rest.substr(rest.front() == '=' ? 1 : 0)));
            }
            break;
        }
    }
    TRY(out.check_pairs());
    size_t n = out.operands_.size();
    if (n > command.most_operands) {
        std::string_view extra = out.operands_[command.most_operands];
        return usage(command.workload
                         ? format("to run a command and profile it, put -- in front of it: rawbpf {} -- {}", command.name, extra)
                         : "",
                     "unexpected argument '{}'", extra);
    }
    if (n < command.least_operands) {
        std::string_view missing = command.operand; // "MAP KEY VALUE": those that come next
        const std::vector<std::string_view> names = split(missing, ' ');
        if (names.size() == command.least_operands) missing.remove_prefix(static_cast<size_t>(names[n].data() - missing.data()));
        return usage("", "{} is missing", missing);
    }
    if (!command.operand_choices.empty())
        for (std::string_view operand : out.operands_) {
            std::vector<std::string_view> choices = split(command.operand_choices, ' ');
            if (std::find(choices.begin(), choices.end(), operand) != choices.end()) continue;
            Suggestion near = nearest(operand, choices);
            return usage(near.close ? format("did you mean {}?", near.word) : "", "'{}' isn't one of {}", operand,
                         joined(command.operand_choices, ", "));
        }
    return out;
}

std::string_view Arguments::text(Id option) const {
    return has(option) ? values_[option.index].back().value : command_->options[option.index].fallback;
}

std::vector<std::string_view> Arguments::all(Id option) const {
    std::vector<std::string_view> out;
    for (const Given &given : values_[option.index]) {
        if (is_list(command_->options[option.index].kind)) {
            std::vector<std::string_view> parts = split(given.value, ',');
            out.insert(out.end(), parts.begin(), parts.end());
        } else {
            out.push_back(given.value);
        }
    }
    return out;
}

uint64_t Arguments::count(Id option) const {
    uint64_t n = 0;
    return parse_whole(text(option), n) ? n : 0;
}

double Arguments::seconds(Id option) const { return text(option).empty() ? 0 : parse_seconds(text(option)).value_or(0.0); }

int Arguments::pid(Id option) const {
    int pid = 0;
    return parse_whole(text(option), pid) ? pid : 0;
}

std::vector<int> Arguments::pids(Id option) const {
    std::vector<int> out;
    for (std::string_view part : all(option)) {
        int pid = 0;
        if (parse_whole(part, pid)) out.push_back(pid);
    }
    return out;
}

Result<std::vector<uint32_t>> Arguments::users(Id option) const {
    std::vector<uint32_t> out;
    for (const Given &given : values_[option.index]) {
        const std::vector<uint32_t> some = TRY_IN(parse_users(given.value), "{}", given.spelling);
        out.insert(out.end(), some.begin(), some.end());
    }
    return out;
}

} // namespace rawbpf::inline v0::cli
