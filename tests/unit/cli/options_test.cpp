// Parsing from a table: every spelling, every refusal and the words of its message.
#include "cli/options.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "asm/nearest.h"
#include "cli/commands.h"
#include "cli/suggest.h"
#include "cli/users.h"
#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::cli;

namespace {

constexpr Option kRows[] = {
    {.name = "freq",
     .letter = 'F',
     .kind = OptionKind::count,
     .argument = "HZ",
     .help = "rate",
     .fallback = "99",
     .least = 1,
     .most = 1000000},
    {.name = "hw", .help = "hardware"},
    {.name = "pid", .letter = 'p', .kind = OptionKind::pids, .repeatable = true, .argument = "PID", .help = "process"},
    {.name = "ps", .help = "stacks"},
    {.name = "cpu", .kind = OptionKind::cpus, .argument = "LIST", .help = "cpus"},
    {.name = "duration", .letter = 'd', .kind = OptionKind::seconds, .argument = "SECONDS", .help = "how long"},
    {.name = "format",
     .letter = 'f',
     .kind = OptionKind::choice,
     .argument = "NAME",
     .help = "format",
     .fallback = "table",
     .choices = "table folded json"},
    {.name = "json", .help = "json", .stands_for = "format=json"},
    {.name = "output", .letter = 'o', .kind = OptionKind::file, .argument = "FILE", .help = "file"},
    {.name = "user", .help = "user", .excludes = "stacks"},
    {.name = "kernel", .help = "kernel", .excludes = "stacks"},
    {.name = "quiet", .letter = 'q', .help = "quiet"},
    {.name = "verbose", .letter = 'v', .help = "verbose"},
};
consteval Id row(std::string_view name) { return find(kRows, name); }
constexpr Command kTool{.name = "tool", .summary = "s", .description = "d", .options = kRows, .workload = true};
constexpr Command kReader{
    .name = "reader", .summary = "s", .description = "d", .operand = "FILE", .least_operands = 1, .most_operands = 1};

Result<Arguments> parse(std::vector<std::string_view> words, const Command &command = kTool) {
    return Arguments::parse(command, words);
}

// "MESSAGE | HINT" of a refusal; "accepted" where there is none.
std::string refusal(std::vector<std::string_view> words, const Command &command = kTool) {
    Result<Arguments> parsed = parse(std::move(words), command);
    if (parsed) return "accepted";
    CHECK(parsed.error().kind == Errc::invalid_argument);
    return parsed.error().context + (parsed.error().hint.empty() ? "" : " | " + parsed.error().hint);
}

} // namespace

TEST_CASE("options: one option, many spellings") {
    for (const std::vector<std::string_view> &words : std::vector<std::vector<std::string_view>>{{"--freq=250"},
                                                                                                 {"--freq", "250"},
                                                                                                 {"-F250"},
                                                                                                 {"-F", "250"},
                                                                                                 {"-F=250"},
                                                                                                 {"-freq", "250"},
                                                                                                 {"-freq=250"},
                                                                                                 {"-qF250"},
                                                                                                 {"-qvF", "250"}}) {
        Result<Arguments> a = parse(words);
        REQUIRE(a);
        CHECK(a->count(row("freq")) == 250);
    }
    CHECK(parse({})->count(row("freq")) == 99);
    CHECK(!parse({})->has(row("freq")));
    CHECK(parse({"-F1", "-F2"})->count(row("freq")) == 2);
}

TEST_CASE("options: the seed's spellings") {
    Result<Arguments> a = parse({"-freq", "100", "-hw", "-pid", "1234", "-ps"});
    REQUIRE(a);
    CHECK(a->count(row("freq")) == 100);
    CHECK(a->has(row("hw")));
    CHECK(a->has(row("ps")));
    CHECK(a->pids(row("pid")) == std::vector<int>{1234});
}

TEST_CASE("options: lists, flags, groups and the command behind --") {
    CHECK(parse({"-p1", "--pid=2,3", "-p", "4"})->pids(row("pid")) == std::vector<int>{1, 2, 3, 4});
    Result<Arguments> a = parse({"-qv", "--json", "-o", "-", "--", "sh", "-c", "--freq x"});
    REQUIRE(a);
    CHECK(a->has(row("quiet")));
    CHECK(a->has(row("verbose")));
    CHECK(a->text(row("format")) == "json");
    CHECK(a->has(row("format")));
    CHECK(a->text(row("output")) == "-");
    CHECK(a->workload() == std::vector<std::string>{"sh", "-c", "--freq x"});
    CHECK(parse({"-f", "table", "-f", "folded"})->text(row("format")) == "folded");
    CHECK(refusal({"--json", "-f", "folded"}) == "--json and -f folded exclude each other | leave one of them out");
    CHECK(refusal({"--format=table", "-json"}) == "-json and --format table exclude each other | leave one of them out");
    CHECK(parse({"--json", "-f", "json"})->text(row("format")) == "json");
    CHECK(parse({"--user"})->has(row("user")));
    CHECK(refusal({"--user", "-kernel"}) == "--user and -kernel exclude each other");
    CHECK(refusal({"--"}) == "a command to run is missing behind --");
    CHECK(parse({"-q", "--help", "--nonsense"})->wants_help());
    CHECK(parse({"--", "--help"})->workload() == std::vector<std::string>{"--help"});
    CHECK(parse({"--", "-x"}, kReader)->operands() == std::vector<std::string_view>{"-x"});
    CHECK(parse({"-"}, kReader)->operands() == std::vector<std::string_view>{"-"});
}

TEST_CASE("options: a refusal names the option, the value and what was expected") {
    CHECK(refusal({"--freq", "many"}) == "--freq: 'many' isn't a whole number (HZ is expected)");
    CHECK(refusal({"-F0"}) == "-F (--freq): 0 is below 1, the least that works");
    CHECK(refusal({"-F", "1000001"}) == "-F (--freq): 1000001 is above 1000000, the most that works");
    CHECK(refusal({"-F99999999999999999999"}) == "-F (--freq): 99999999999999999999 is above 1000000, the most that works");
    CHECK(refusal({"-F="}) == "-F (--freq): '' isn't a whole number (HZ is expected)");
    CHECK(refusal({"--freq"}) == "--freq needs a value: HZ");
    CHECK(refusal({"--freq", "--hw"}) == "--freq needs a value: HZ");
    CHECK(refusal({"--freq", "-5"}) == "--freq: '-5' isn't a whole number (HZ is expected)");
    CHECK(refusal({"-d", "-.5"}) == "-d (--duration): '-.5' isn't a time (expected: 3, 0.5, 10us, 200ms, 5s, 2m or 1h)");
    CHECK(refusal({"-o", "-5"}).starts_with("-o (--output) needs a value"));
    CHECK(refusal({"-q", "-f"}) == "-f (--format) needs a value: one of table, folded, json");
    CHECK(refusal({"--hw=1"}) == "--hw takes no value, but was given '1'");
    CHECK(refusal({"-q=1"}) == "-q takes no value, but was given '1'");
    CHECK(refusal({"-p", "0"}) == "-p (--pid): '0' isn't a process id (a whole number from 1)");
    CHECK(refusal({"-p", "12,x"}) == "-p (--pid): 'x' isn't a process id (a whole number from 1)");
    CHECK(refusal({"-p", ","}) == "-p (--pid): a process id is expected");
    CHECK(refusal({"-d", "soon"}) == "-d (--duration): 'soon' isn't a time (expected: 3, 0.5, 10us, 200ms, 5s, 2m or 1h)");
    CHECK(refusal({"-d", "0"}) == "-d (--duration): 0 is no time at all");
    CHECK(refusal({"-d", "0.1ns"}) == "-d (--duration): 0.1ns is less than a nanosecond");
    CHECK(refusal({"-d", "1000000000h"}) == "-d (--duration): 1000000000h is above 1000000000 s, the most that works");
    CHECK(refusal({"-f", "fodled"}) == "-f (--format): 'fodled' isn't one of table, folded, json | did you mean folded?");
    CHECK(refusal({"-f", "xxxxxxxxx"}) == "-f (--format): 'xxxxxxxxx' isn't one of table, folded, json");
    CHECK(refusal({"--output="}) == "--output: the path is empty");
    CHECK(refusal({"--cpu", "0-x"}).starts_with("--cpu: "));
    CHECK(refusal({"./split", "3"}) ==
          "unexpected argument './split' | to run a command and profile it, put -- in front of it: rawbpf tool -- ./split");
    CHECK(refusal({}, kReader) == "FILE is missing");
    CHECK(refusal({"a", "b"}, kReader) == "unexpected argument 'b'");
}

namespace {

Result<Arguments> given(const Command &command, std::vector<std::string> words) {
    std::vector<std::string_view> views;
    for (size_t i = 0; i < command.least_operands; ++i) words.push_back(format("operand{}", i));
    for (const std::string &word : words) views.push_back(word);
    return Arguments::parse(command, views);
}
// The rules come before what is wrong with operands.
std::string said(const Command &command, const std::vector<std::string> &words) {
    auto parsed = given(command, words);
    return parsed ? std::string() : parsed.error().context;
}
const Option *row_of(const Command &command, std::string_view name) {
    for (const Option &row : command.options)
        if (row.name == name) return &row;
    return nullptr;
}
std::string long_name(const Option &row) { return format("--{}", row.name); }
// A value that its check takes.
std::string any_value(const Option &row) {
    switch (row.kind) {
    case OptionKind::count: return format("{}", std::max<uint64_t>(row.least, 1));
    case OptionKind::choice: return std::string(split(row.choices, ' ').back());
    case OptionKind::users: return "0";
    default: return "1";
    }
}

} // namespace

TEST_CASE("options: in every command no pair is taken silently of which one would have no effect") {
    size_t short_forms = 0, bound = 0, written = 0, negative = 0;
    for (const Command *command : all_commands()) {
        CAPTURE(command->name);
        for (const Option &row : command->options) {
            CAPTURE(row.name);
            const std::string name = long_name(row);
            CHECK((row.letter < '0' || row.letter > '9')); // -1 is a number
            if (!row.stands_for.empty()) {
                const size_t equals = row.stands_for.find('=');
                const Option *target = row_of(*command, row.stands_for.substr(0, equals));
                REQUIRE(target);
                const std::vector<std::string_view> choices = split(target->choices, ' ');
                const std::string other = choices.empty() || choices[0] == row.stands_for.substr(equals + 1)
                                              ? any_value(*target)
                                              : std::string(choices[0]);
                CHECK(said(*command, {name, long_name(*target), other}) ==
                      format("{} and --{} {} exclude each other", name, target->name, other));
                CHECK(said(*command, {long_name(*target) + "=" + other, name}).find("exclude each other") != std::string::npos);
                ++short_forms;
            }
            if (!row.only_with.empty()) {
                const size_t equals = row.only_with.find('=');
                const Option *about = row_of(*command, row.only_with.substr(0, equals));
                REQUIRE(about);
                if (equals == row.only_with.npos) { // with another flag
                    CHECK(said(*command, {name}).find(format("{} is about --{}", name, about->name)) != std::string::npos);
                    CHECK(said(*command, {name, long_name(*about)}).find(" is about --") == std::string::npos);
                    ++bound;
                    continue;
                }
                const std::vector<std::string_view> fits = split(row.only_with.substr(equals + 1), ' ');
                std::vector<std::string> words = {name};
                if (row.kind != OptionKind::flag) words.push_back(any_value(row));
                words.push_back(long_name(*about));
                for (const std::string_view choice : split(about->choices, ' ')) {
                    std::vector<std::string> all = words;
                    all.emplace_back(choice);
                    const bool fit = std::find(fits.begin(), fits.end(), choice) != fits.end();
                    CHECK((said(*command, all).find(" is about --") == std::string::npos) == fit);
                }
                for (const std::string_view choice : fits)
                    CHECK((" " + std::string(about->choices) + " ").find(format(" {} ", choice)) != std::string::npos);
                ++bound;
            }
            if (row.written) {
                for (const Option &other : command->options) {
                    if (&other == &row || (other.kind != OptionKind::file && !other.written)) continue;
                    const std::string text = said(*command, {name, "there", long_name(other), ".//there"});
                    if (!row.excludes.empty() && row.excludes == other.excludes) { // never both, whatever they name
                        CHECK(text.find("exclude each other") != std::string::npos);
                        continue;
                    }
                    CHECK(text.find("name the same file") != std::string::npos);
                    CHECK(said(*command, {name, "there", long_name(other), "here"}).find("same file") == std::string::npos);
                    CHECK(said(*command, {name, "/dev/null", long_name(other), "/dev/null"}).find("same file") ==
                          std::string::npos);
                    ++written;
                }
                if (command->operand_is_file && command->most_operands > 0) {
                    std::vector<std::string> words = {name, "there"};
                    for (size_t i = 0; i + 1 < command->least_operands; ++i) words.emplace_back("here");
                    words.emplace_back("./there");
                    std::vector<std::string_view> views(words.begin(), words.end());
                    const auto parsed = Arguments::parse(*command, views);
                    REQUIRE(!parsed);
                    CHECK(parsed.error().context.find("would be written over") != std::string::npos);
                    ++written;
                }
            }
            if (row.kind == OptionKind::count || row.kind == OptionKind::seconds || row.kind == OptionKind::pid ||
                row.kind == OptionKind::pids) {
                const std::string text = said(*command, {name, "-1"});
                CHECK(text.find("-1") != std::string::npos);
                CHECK(text.find("needs a value") == std::string::npos);
                ++negative;
            }
            // What help says of one format the parser knows.
            const size_t colon = row.help.find(": ");
            const Option *format_row = row_of(*command, "format");
            if (format_row && colon != row.help.npos && row.name != "verbose") { // more words are asked for by habit
                std::vector<std::string_view> choices = split(format_row->choices, ' ');
                const bool named = std::find(choices.begin(), choices.end(), row.help.substr(0, colon)) != choices.end();
                if (named) CHECK(row.only_with.starts_with("format="));
            }
        }
    }
    CHECK(short_forms >= 2);
    CHECK(bound >= 8);
    CHECK(written >= 2);
    CHECK(negative >= 8);
}

TEST_CASE("options: an unknown one is answered with the nearest") {
    CHECK(refusal({"--frq", "99"}) == "unknown option --frq | did you mean --freq?\nrawbpf tool --help lists them all");
    CHECK(refusal({"--frequency=99"}) == "unknown option --frequency | did you mean --freq?\nrawbpf tool --help lists them all");
    CHECK(refusal({"--Format"}).starts_with("unknown option --Format | did you mean --format?"));
    CHECK(refusal({"-fomrat", "svg"}).starts_with("-f (--format): 'omrat'")); // a cluster is a cluster
    CHECK(refusal({"-xq"}).starts_with("unknown option -xq | the nearest option is --"));
    CHECK(refusal({"--zzzzzzzzzzzz"}).starts_with("unknown option --zzzzzzzzzzzz | the nearest option is --"));
    CHECK(refusal({"--="}).starts_with("unknown option -- |"));
    CHECK(refusal({std::string_view("--\xff\x00\x01", 5)}).starts_with("unknown option"));
}

TEST_CASE("options: users by number and by name") {
    constexpr std::string_view kPasswd = "root:x:0:0:root:/root:/bin/sh\nwww:x:33:33::/:\nbroken\nodd:x\nhalf:x:12y:1\n"
                                         "none:x:4294967295:1\nlast:x:4294967294";
    using Users = std::vector<uint32_t>;
    const auto parsed = [&](std::string_view list) { return parse_users(list, kPasswd).value_or(Users{}); };
    CHECK(parsed("0") == Users{0});
    CHECK(parsed("root,www,7,last") == Users{0, 33, 7, 4294967294});
    for (std::string_view wrong :
         {"4294967295", "99999999999999999999", "-1", "nobody-here", "ro", "broken", "odd", "half", "none", "root,x", "", ","}) {
        CAPTURE(wrong);
        CHECK(parse_users(wrong, kPasswd).error().context.find("user id") != std::string::npos);
    }
    CHECK(parse_users("root").value() == Users{0}); // this system's
}

TEST_CASE("suggest: distances") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("profile", "profil") == 1);
    CHECK(edit_distance("porfile", "profile") == 1); // a swap is one mistake
    CHECK(edit_distance("kitten", "sitting") == 3);
    std::string_view words[] = {"profile", "report", "completion", "help"};
    CHECK(nearest("profle", words).word == "profile");
    CHECK(nearest("prof", words).close);
    CHECK(nearest("rep", words).word == "report");
    CHECK(!nearest("xyzzy", words).close);
    CHECK(nearest("a", {}).word.empty());
}

TEST_CASE("nearest: few steps beside the word's length, or a name that holds the word") {
    auto near = [](std::string_view word, std::initializer_list<const char *> names) {
        Nearest nearest(word);
        for (const char *name : names) nearest.offer(name);
        return nearest.hint();
    };
    CHECK(near("jmp", {"jeq", "jne", "ja", "goto"}).empty());
    CHECK(near("int", {"and", "exit", "trace_printk"}).empty());
    CHECK(near("xpd", {"tc", "xdp"}) == "did you mean `xdp`?");
    CHECK(near("map_lookup", {"fib_lookup", "map_lookup_percpu_elem", "map_lookup_elem"}) == "did you mean `map_lookup_elem`?");
    CHECK(near("lookup", {"map_lookup_elem", "fib_lookup"}) == "did you mean `fib_lookup`?");
    CHECK(near_register("be24").empty());
    CHECK(near_register("x7") == "r7");
}

TEST_CASE("options: of all commands: a letter stands for one option, and the same name takes the same kind of value") {
    constexpr std::string_view kSame[] = {"sample", "count", "diff", "prog", "btf", "errors", "event", "freq", "period", "id"};
    std::map<char, std::string_view> letters;
    std::map<std::string_view, std::pair<OptionKind, char>> names;
    for (const Command *command : all_commands())
        for (const Option &option : command->options) {
            const std::string where = format("{} --{}", command->name, option.name);
            CAPTURE(where);
            if (option.letter) CHECK(letters.try_emplace(option.letter, option.name).first->second == option.name);
            if (std::find(std::begin(kSame), std::end(kSame), option.name) == std::end(kSame)) continue;
            CHECK(names.try_emplace(option.name, option.kind, option.letter).first->second ==
                  std::pair(option.kind, option.letter));
        }
    CHECK(letters['F'] == "freq");
}

TEST_CASE("options: of all commands: earlier spellings still work") {
    const struct {
        std::string_view command, now;
        std::vector<std::string_view> words;
    } earlier[] = {
        {"profile", "period", {"-e", "page-faults", "-c", "5"}},
        {"profile", "period", {"-e", "page-faults", "--count=5"}},
        {"custom", "freq", {"--sample", "99", "/bin/true:main"}},
        {"run", "clock", {"--count", "instructions", "x.exp"}},
        {"exec", "both", {"--diff", "-"}},
        {"disasm", "id", {"--prog", "42"}},
        {"trace", "errors", {"-e", "vfs_read"}},
        {"gen skeleton", "name", {"-n", "x", "x.o"}},
        {"profile", "object", {"--bpf", "x.o"}},
    };
    for (const auto &[name, now, words] : earlier) {
        const Command *command = find_command(name);
        if (!command) continue; // a part that this build leaves out
        const std::string where = format("{} {}", name, words[0]);
        CAPTURE(where);
        const Result<Arguments> parsed = Arguments::parse(*command, words);
        REQUIRE(parsed);
        for (size_t i = 0; i < command->options.size(); ++i)
            if (command->options[i].name == now) CHECK(parsed->has(Id{i}));
    }
}
