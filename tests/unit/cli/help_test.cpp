// What is made from a table: --help, man pages, completions.
#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "cli/commands.h"
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
     .help = "samples a second",
     .section = "What",
     .fallback = "99"},
    {.name = "hw", .help = "use the CPU's counter; it's exact"},
    {.name = "a-very-long-option",
     .kind = OptionKind::file,
     .repeatable = true,
     .argument = "FILE",
     .help = "write there instead of to the standard output, all of it, always",
     .section = "Where"},
    {.name = "format",
     .letter = 'f',
     .kind = OptionKind::choice,
     .argument = "NAME",
     .help = "how",
     .fallback = "table",
     .choices = "table json"},
    {.name = "json", .help = "short", .stands_for = "format=json"},
};
constexpr Example kExamples[] = {{"rawbpf tool -F 9", "nine a second"}};
constexpr Command kTool{.name = "tool",
                        .summary = "does it",
                        .description = "Does it.\n\n.Twice \\ over.",
                        .options = kRows,
                        .examples = kExamples,
                        .workload = true};

} // namespace

TEST_CASE("help: golden") {
    CHECK(help_text(kTool) == R"(Usage:
  rawbpf tool [OPTION]... [-- COMMAND [ARG]...]

Does it.

.Twice \ over.

What:
  -F, --freq HZ              samples a second [99]
      --hw                   use the CPU's counter; it's exact

Where:
      --a-very-long-option FILE
                             write there instead of to the standard output, all
                             of it, always; may be repeated
  -f, --format NAME          how: table, json [table]
      --json                 short

Examples:
  rawbpf tool -F 9
      nine a second
)");
}

TEST_CASE("help: lines are wrapped at words") {
    CHECK(wrapped("one two three", 7, 0) == "one two\nthree");
    CHECK(wrapped("one two three", 9, 2) == "one two\n  three");
    CHECK(wrapped("incomprehensibilities a", 5, 1) == "incomprehensibilities\n a");
    CHECK(wrapped("a\n\nb", 20, 2) == "a\n\n  b");
    CHECK(wrapped("", 20, 2) == "");
}

TEST_CASE("man: golden") {
    std::string page = man_page(kTool);
    CHECK(page.find(".TH RAWBPF\\-TOOL 1 \"\" \"rawbpf ") == 0);
    CHECK(page.find(".SH NAME\nrawbpf\\-tool \\- does it\n") != std::string::npos);
    CHECK(page.find("Does it.\n.PP\n\\&.Twice \\e over.\n") != std::string::npos);
    CHECK(page.find(".TP\n\\fB\\-F\\fR, \\fB\\-\\-freq\\fR \\fIHZ\\fR\nsamples a second.\nDefault: \\fB99\\fR.\n") !=
          std::string::npos);
    CHECK(page.find("how: one of \\fBtable\\fR, \\fBjson\\fR.\n") != std::string::npos);
    CHECK(page.find("\\fB\\-\\-json\\fR\nshort.\n") != std::string::npos);
    CHECK(page.find(".SH EXIT STATUS\n.TP\n.B 0\ndone\n") != std::string::npos);
}

TEST_CASE("markdown: golden") {
    CHECK(markdown_page(kTool) == R"(# rawbpf tool

does it.

## Usage

```
rawbpf tool [OPTION]... [-- COMMAND [ARG]...]
```

Does it.

.Twice \\ over.

## Options

### What

- `-F HZ`, `--freq HZ`: samples a second. Default: `99`.
- `--hw`: use the CPU's counter; it's exact.

### Where

- `--a-very-long-option FILE`: write there instead of to the standard output, all of it, always. May be repeated.
- `-f NAME`, `--format NAME`: how. One of `table`, `json`. Default: `table`.
- `--json`: short.

## Examples

nine a second:

```
rawbpf tool -F 9
```

## Exit status

- `0`: done
- `1`: failed
- `2`: wrong usage
- `3`: this kernel, this build or these privileges can't do it; the message says which, and what would
- `4`: an expectation did not hold: of an experiment, lab check, exec --both or compare --expect-same
)");
}

TEST_CASE("markdown: what Markdown would interpret is written as it stands, and code stays code") {
    constexpr Command odd{.name = "odd", .summary = "a*b_c <d>", .description = "`x = *(u32 *)(r1 + 0)` and [f] | #1 *."};
    std::string page = markdown_page(odd);
    CHECK(page.find("a\\*b\\_c \\<d\\>.") != std::string::npos);
    CHECK(page.find("`x = *(u32 *)(r1 + 0)` and \\[f\\] \\| \\#1 \\*.") != std::string::npos);
    // A backtick that isn't closed would make code of what follows.
    for (const Command *command : all_commands()) {
        CAPTURE(command->name);
        std::string text = std::string(command->summary) + std::string(command->description);
        CHECK(std::count(text.begin(), text.end(), '`') % 2 == 0);
        for (const Option &option : command->options) CHECK(std::count(option.help.begin(), option.help.end(), '`') % 2 == 0);
    }
}

TEST_CASE("completions: every option, choice and command is in each script") {
    const Command *commands[] = {&kTool};
    for (std::string_view shell : {"bash", "zsh", "fish"}) {
        std::string script = completion_script(shell, commands);
        for (std::string_view word : {"tool", "freq", "a-very-long-option", "table json"}) {
            CAPTURE(word);
            CHECK(script.find(word) != std::string::npos);
        }
    }
    CHECK(completion_script("zsh", commands).find("it'\\''s exact") != std::string::npos);
    CHECK(completion_script("fish", commands).find("it\\'s exact") != std::string::npos);
    CHECK(completion_script("tcsh", commands).empty());
}

// The real tables, each against the rules that the rest relies on.
TEST_CASE("commands: every table is well formed") {
    for (const Command *command : all_commands()) {
        CAPTURE(command->name);
        CHECK(find_command(command->name) == command);
        CHECK(bool(command->run));
        CHECK(!command->summary.empty());
        CHECK(!command->summary.ends_with('.'));
        CHECK(command->description.ends_with('.') != command->hidden);
        for (size_t i = 0; i < command->options.size(); ++i) {
            const Option &o = command->options[i];
            CAPTURE(o.name);
            CHECK(!o.help.empty());
            CHECK(!o.help.ends_with('.'));
            CHECK((o.kind == OptionKind::flag) == (o.argument.empty() || o.argument.starts_with("[=")));
            CHECK((o.kind == OptionKind::choice) == !o.choices.empty());
            CHECK(o.name != "help");
            CHECK(o.letter != 'h');
            for (size_t j = 0; j < i; ++j) {
                CHECK(command->options[j].name != o.name);
                CHECK((o.letter == 0 || command->options[j].letter != o.letter));
            }
            if (!o.stands_for.empty()) { // its target exists and takes that value
                std::string word = "--" + std::string(o.name);
                std::string_view words[] = {word};
                CHECK((command->least_operands > 0 || Arguments::parse(*command, words)));
            }
        }
        std::string help = help_text(*command);
        size_t column = 0;
        for (char c : help) {
            column = c == '\n' ? 0 : column + 1;
            CHECK(column <= 80);
        }
        // An example is a command line that parses.
        for (const Example &example : command->examples) {
            CAPTURE(example.command);
            std::vector<std::string_view> words = split(example.command, ' ');
            const std::vector<std::string_view> name = split(command->name, ' '); // one word or two
            auto self = std::search(words.begin(), words.end(), name.begin(), name.end());
            REQUIRE(self != words.end());
            self += static_cast<long>(name.size()) - 1;
            auto end =
                std::find_if(self, words.end(), [](std::string_view w) { return w == "|" || w == ">" || w.starts_with(')'); });
            std::vector<std::string_view> own(self + 1, end);
            if (!own.empty() && own.back().ends_with(')')) own.back().remove_suffix(1);
            Result<Arguments> parsed = Arguments::parse(*command, own);
            if (!parsed) MESSAGE(parsed.error().message());
            CHECK(parsed);
        }
    }
}

// What a value is called in help says what it is, and of which kind: the range, and the word that a refusal has for it.
TEST_CASE("commands: numbers have the range and the word of what they are") {
    struct Rule {
        OptionKind kind;
        std::vector<std::string_view> arguments;
        std::string_view word; ///< of the refusal
        std::vector<std::string> good, wrong;
    };
    const std::string huge = "99999999999999999999";
    const Rule rules[] = {
        {OptionKind::pid, {"PID"}, "isn't a process id", {"1", "4194304"}, {"0", "-1", "x", "", "1,2", huge}},
        {OptionKind::pids, {"PID"}, "process id", {"1", "1,4194304"}, {"0", "-1", "x", "", ",", "1,x", huge}},
        {OptionKind::tids, {"TID"}, "thread id", {"1", "1,4194304"}, {"0", "-1", "x", "", ",", "1,x", huge}},
        {OptionKind::users,
         {"UID"},
         "user id",
         {"0", "0,4294967294", "root"},
         {"4294967295", huge, "-1", "", ",", "0,no such user"}},
        {OptionKind::seconds,
         {"SECONDS", "TIME"},
         "",
         {"1", "1ns", "2h", "1000000000"},
         {"0", "0.1ns", "-1", "x", "", "1000000000m"}},
        {OptionKind::count, {"N", "HZ", "BYTES", "ID"}, "", {}, {"-1", "x", "", "1,2", "0x10", huge}},
    };
    size_t seen = 0;
    for (const Command *command : all_commands())
        for (const Option &option : command->options) {
            CAPTURE(command->name);
            CAPTURE(option.name);
            const auto refusal = [&](const std::string &value) {
                const std::string word = format("--{}={}", option.name, value);
                const std::string_view words[] = {word};
                const Result<Arguments> parsed = Arguments::parse(*command, words);
                const std::string said = parsed ? std::string() : parsed.error().context;
                return said.starts_with(format("--{}: ", option.name)) ? said : std::string(); // an operand may be missing, too
            };
            const auto called = [&](const Rule &rule) {
                return std::find(rule.arguments.begin(), rule.arguments.end(), option.argument) != rule.arguments.end();
            };
            const Rule *rule =
                std::find_if(std::begin(rules), std::end(rules), [&](const Rule &r) { return r.kind == option.kind; });
            if (rule == std::end(rules)) {
                CHECK(std::none_of(std::begin(rules), std::end(rules), called));
                continue;
            }
            ++seen;
            CHECK(called(*rule));
            const bool list =
                option.kind == OptionKind::pids || option.kind == OptionKind::tids || option.kind == OptionKind::users;
            CHECK(option.repeatable == list);
            for (const std::string &value : rule->good) CHECK(refusal(value) == "");
            for (const std::string &value : rule->wrong) {
                CAPTURE(value);
                CHECK(refusal(value) != "");
                CHECK(refusal(value).find(rule->word) != std::string::npos);
            }
            if (option.kind != OptionKind::count) continue;
            CHECK(refusal(format("{}", option.least)) == "");
            CHECK(refusal(format("{}", option.most)) == "");
            if (option.least > 0) CHECK(refusal(format("{}", option.least - 1)).find(" is below ") != std::string::npos);
            CHECK(refusal(option.most == UINT64_MAX ? huge : format("{}", option.most + 1)).find(" is above ") !=
                  std::string::npos);
        }
    CHECK(seen > 20);
}

TEST_CASE("commands: --syscalls speaks of -v where there is one") {
    size_t without = 0;
    for (const Command *command : all_commands()) {
        CAPTURE(command->name);
        const auto named = [&](std::string_view name) {
            return std::find_if(command->options.begin(), command->options.end(),
                                [&](const Option &o) { return o.name == name; });
        };
        const auto calls = named("syscalls"), verbose = named("verbose");
        if (calls == command->options.end()) continue;
        const bool has = verbose != command->options.end() && verbose->letter == 'v';
        CHECK((calls->help.find("-v") != std::string_view::npos) == has);
        without += !has;
    }
    CHECK(without > 0);
}
