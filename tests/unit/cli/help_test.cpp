// What is made from a table: --help, man pages, completions.
#include "cli/help.h"
#include "cli/lab.h"

#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::cli;

namespace {

constexpr Option kRows[] = {
    {.name = "freq",
     .letter = 'F',
     .kind = Kind::count,
     .argument = "HZ",
     .help = "samples a second",
     .section = "What",
     .fallback = "99"},
    {.name = "hw", .help = "use the CPU's counter; it's exact"},
    {.name = "a-very-long-option",
     .kind = Kind::file,
     .repeatable = true,
     .argument = "FILE",
     .help = "write there instead of to the standard output, all of it, always",
     .section = "Where"},
    {.name = "format",
     .letter = 'f',
     .kind = Kind::choice,
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
            CHECK((o.kind == Kind::flag) == o.argument.empty());
            CHECK((o.kind == Kind::choice) == !o.choices.empty());
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

TEST_CASE("lab: the other executable lies beside this one and is named alike") {
    CHECK(lab_beside("/usr/bin/rawbpf") == "/usr/bin/rawbpf-lab");
    CHECK(lab_beside("/opt/a b/rawbpf-arm64") == "/opt/a b/rawbpf-lab-arm64");
    CHECK(lab_beside("/opt/tool") == "/opt/rawbpf-lab");
    CHECK(lab_beside("rawbpf") == "rawbpf-lab");
    CHECK(lab_beside("") == "rawbpf-lab");
}
