// Lessons: titles, hints, a student's file as an experiment, reports.
#include <string>
#include <string_view>
#include <vector>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/run.h"
#include "programs/lab/hints.h"
#include "programs/lab/lesson.h"
#include "programs/lab/report.h"
#include "programs/lab/student.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::lab;

TEST_CASE("lab: a lesson's title has a number and words") {
    uint32_t number = 0;
    std::string_view title;
    CHECK(parse_heading("# 12 · Packets by test run\n\ntext", number, title));
    CHECK(number == 12);
    CHECK(title == "Packets by test run");
    for (std::string_view text : {"", "# Maps\n", "## 3 · Maps", "# 3 Maps", "# 0 · Maps", "# 3 · ", "3 · Maps"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_heading(text, number, title));
    }
}

TEST_CASE("lab: a student's file says of which lesson it is") {
    CHECK(lesson_said("# Lesson 3: maps\n") == 3);
    CHECK(lesson_said("\n// Lesson 14: a loader\n") == 14);
    CHECK(lesson_said("/* Lesson 2 */") == 2);
    CHECK(lesson_said("# maps\nr0 = 0\n") == 0);
    CHECK(lesson_said("Lesson 3") == 0); // no comment
    CHECK(lesson_said("\n\n\n\n\n# Lesson 3") == 0);
    CHECK(lesson_said("") == 0);
}

TEST_CASE("lab: comments above an expectation say why and where") {
    const std::string check = "packet 00\n"
                              "# at: far away\n"
                              "run p\n"
                              "# why 0: nothing happens\n"
                              "# why: each counts once\n"
                              "# at: += 1\n"
                              "# at: r0\n"
                              "expect counts[1] == 3\n"
                              "expect counts[2] == 3\n";
    const std::vector<std::string_view> lines = lines_of(check);
    REQUIRE(lines.size() == 9);
    CHECK(hint_of(lines, 8, "0").why == "nothing happens");
    CHECK(hint_of(lines, 8, "0").exact);
    CHECK_FALSE(hint_of(lines, 8, "2").exact);
    CHECK(hint_of(lines, 8, "2").why == "each counts once");
    CHECK(hint_of(lines, 8, "2").at == std::vector<std::string>{"+= 1", "r0"});
    CHECK(hint_of(lines, 9, "0").why.empty());
    CHECK(hint_of(lines, 9, "0").at.empty());
    CHECK(hint_of(lines, 0, "0").why.empty());
    CHECK(hint_of(lines, 10, "0").why.empty());
    CHECK(line_with({"exit", "r0 += 1"}, {"nowhere", "+= 1", "exit"}) == 2);
    CHECK(line_with({"exit"}, {"nowhere"}) == 0);
}

TEST_CASE("lab: terms of a check") {
    CHECK_FALSE(terms_of("packet 00\nexpect packet.result == 1\n").kernel);
    CHECK(terms_of("# needs: kernel\n").kernel);
    CHECK_FALSE(terms_of("# verify: no\n").verified);
    CHECK(terms_of("# verify: refused infinite loop\n").refused == "infinite loop");
    CHECK_FALSE(terms_of("needs: kernel\n").kernel);
    const Terms terms = terms_of("# instruction lock *(u64 *) | atomic_fetch_add: not in one step\n# at: += 1\n# at: r0\n"
                                 "packet 00\n# at: elsewhere\nexpect packet.result == 0\n");
    REQUIRE(terms.instructions.size() == 1);
    CHECK(terms.instructions[0].texts == std::vector<std::string>{"lock *(u64 *)", "atomic_fetch_add"});
    CHECK(terms.instructions[0].why == "not in one step");
    CHECK(terms.instructions[0].at == std::vector<std::string>{"+= 1", "r0"});
}

TEST_CASE("lab: a failed expectation as a sentence") {
    experiment::Failure failure;
    failure.source = "expect counts[0] == 1000   ";
    failure.parts = {{"counts[0]", 998}};
    std::string value;
    CHECK(sentence_of(failure, value) == "counts[0]: expected 1000, got 998");
    CHECK(value == "998");
    failure.source = "expect a < b";
    failure.parts = {{"a", 3}, {"b", 2}};
    CHECK(sentence_of(failure, value) == "expected a < b: a is 3, b is 2");
    CHECK(value.empty());
    failure.source = "expect a == 1 && b == 2";
    CHECK(sentence_of(failure, value) == "expected a == 1 && b == 2: a is 3, b is 2");
    CHECK(value.empty());
}

TEST_CASE("lab: hex instructions keep their lines") {
    const experiment::Parsed good =
        student_experiment("# first\n\n61 10 00 00 00 00 00 00 # load\n0700000005000000\n", "lab.hex");
    CHECK(good);
    CHECK(good.experiment.assembly == "\n\n.8byte 0x0000000000001061\n.8byte 0x0000000500000007\n");
    const experiment::Parsed wide = student_experiment("18 01 00 00 01 00 00 00 00 00 00 00 02 00 00 00\n", "lab.hex");
    CHECK(wide.experiment.assembly == ".8byte 0x0000000100000118; .8byte 0x0000000200000000\n");
    const experiment::Parsed fewer = student_experiment("61 10\n", "lab.hex");
    CHECK(fewer.mistakes.report().find("lab.hex:1:1: this line has 4 hex digits, and an instruction has 16") == 0);
    const experiment::Parsed other = student_experiment("\n61 1x\n", "lab.hex");
    CHECK(other.mistakes.report().find("lab.hex:2:5: this is no hex digit") == 0);
}

TEST_CASE("lab: of an experiment of a student's only programs and maps stay") {
    const experiment::Parsed parsed = student_experiment("asm {\nr0 = 0\nexit\n}\nworkload rm -r x\nexpect 1 == 1\n", "lab.exp");
    CHECK(parsed);
    CHECK(parsed.experiment.steps.empty());
    CHECK(parsed.experiment.assembly.find("r0 = 0") != std::string::npos);
    CHECK(says_anything("# x\n\n// y\nexit\n"));
    CHECK_FALSE(says_anything("# x\n\n// y\n  \n"));
    CHECK(is_program("lab.asm"));
    CHECK_FALSE(is_program("lab.sh"));
}

TEST_CASE("lab: a report for people and for graders") {
    Report report;
    report.number = 3, report.lesson = "03-maps", report.file = "lab.asm", report.expectations = 2, report.failed = 1;
    Finding finding;
    finding.kind = "expectation", finding.sentence = "counts[0]: expected 1000, got 998", finding.why = "the add isn't atomic",
    finding.line = 14;
    report.findings.push_back(finding);
    CHECK(report_text(report) == "counts[0]: expected 1000, got 998: the add isn't atomic, lab.asm:14\n"
                                 "rawbpf lab check: lesson 3 is not solved yet: 1 of 2 expectations failed\n");
    CHECK(report_json(report) == "{\"type\":\"finding\",\"kind\":\"expectation\",\"file\":\"lab.asm\",\"line\":14,\"message\":"
                                 "\"counts[0]: expected 1000, got 998\","
                                 "\"why\":\"the add isn't atomic\",\"hint\":null}\n"
                                 "{\"type\":\"result\",\"lesson\":3,\"name\":\"03-maps\",\"passed\":false,\"findings\":1,"
                                 "\"expectations\":2,\"failed\":1}\n");
    // A complaint that names its place isn't told the place twice.
    report.findings[0].sentence = "lab.asm:14:3: there is no register r11\n";
    report.findings[0].why.clear();
    CHECK(report_text(report).find("lab.asm:14:3: there is no register r11\nrawbpf lab check") == 0);
    report.findings.clear(), report.failed = 0;
    CHECK(report_text(report) == "lesson 3 (03-maps): solved: 2 expectations hold\n");
}
