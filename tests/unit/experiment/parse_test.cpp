// The language: what is read, and what is said of what can't be. A mistake is compared as the user sees it, caret and all.
#include "programs/experiment/parse.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::experiment;

namespace {

Experiment good(std::string_view text, const std::vector<Setting> &settings = {}) {
    Parsed parsed = parse(text, "x.exp", settings);
    CHECK(parsed.mistakes.report() == "");
    return std::move(parsed.experiment);
}
std::string mistakes(std::string_view text, const std::vector<Setting> &settings = {}) {
    return parse(text, "x.exp", settings).mistakes.report();
}

// The first value that a text expects, with every pair in parentheses.
std::string shown(const Expr &e) {
    switch (e.kind) {
    case Expr::Kind::number: return std::to_string(e.number);
    case Expr::Kind::text: return "\"" + e.text + "\"";
    case Expr::Kind::unary: return std::string(trace::operator_text(e.op)) + shown(e.args[0]);
    case Expr::Kind::binary:
        return "(" + shown(e.args[0]) + " " + std::string(trace::operator_text(e.op)) + " " + shown(e.args[1]) + ")";
    default: break;
    }
    std::string out = (e.kind == Expr::Kind::map ? "@" : "") + e.text;
    if (e.keyed || e.kind == Expr::Kind::call) {
        out += e.keyed ? '[' : '(';
        for (size_t i = 0; i < e.args.size(); ++i) out += (i == 0 ? "" : ", ") + shown(e.args[i]);
        out += e.keyed ? ']' : ')';
    }
    for (const trace::Step &step : e.steps)
        out += step.member.empty() ? "[" + std::to_string(step.index) + "]" : "." + step.member;
    return out;
}
std::string value(const std::string &text) {
    const Parsed parsed = parse("expect " + text, "x.exp");
    return parsed && parsed.experiment.steps.size() == 1 ? shown(parsed.experiment.steps[0].value) : parsed.mistakes.report();
}

} // namespace

TEST_CASE("experiment parse: values bind as C's do") {
    CHECK(value("counts[0] > 100") == "(counts[0] > 100)");
    CHECK(value("counts[\"cat\"] + 2 * 3 == 7") == "((counts[\"cat\"] + (2 * 3)) == 7)");
    CHECK(value("events.lost == 0 && sum(reads) > 1k") == "((events.lost == 0) && (sum(reads) > 1024))");
    CHECK(value("us[1, \"a\"].avg < 10ms") == "(us[1, \"a\"].avg < 10000000)");
    CHECK(value("!(a || -b)") == "!(a || -b)");
    CHECK(value("x << 2 >= 0x1f") == "((x << 2) >= 31)");
    CHECK(value("'a' - 1") == "(97 - 1)");
    CHECK(value("(a +\n  b)") == "(a + b)"); // in parentheses a line's end is a blank
}

TEST_CASE("experiment parse: a whole one") {
    const Experiment e = good("#!/usr/bin/env -S rawbpf run\n"
                              "# Reads\n"
                              "param who = cat   # whose\n"
                              "map counts array key u32 value u64 entries 4\n"
                              "asm {\n"
                              ".program p \"xdp\"\n"
                              "r0 = 2\n"
                              "exit\n"
                              "}\n"
                              "object lib.bpf.o\n"
                              "attach p interface lo egress\n"
                              "on kprobe:a | kprobe:b, tracepoint:c:d if comm == \"$who\" {\n"
                              "    @reads[comm, arg0->f_flags] = count(); @last = nsecs\n"
                              "    if arg1 > 4k { return } else if arg1 == 0 { emit small pid, n = arg1 } else { delete @last }\n"
                              "}\n"
                              "format small \"{pid:7} {{{n:>8}}}\"\n"
                              "set limit = 7\n"
                              "workload sh -c 'cat \"$$HOME/x y\" # no comment'\n"
                              "wait workload\n"
                              "wait 500ms\n"
                              "events until 100 for 2s\n"
                              "every 1s times 3 {\n"
                              "    print reads as json top 5\n"
                              "    clear reads, last\n"
                              "}\n"
                              "set counts[3] = 9\n"
                              "trigger ./lib.so:f 1 2\n"
                              "packet 0011ff to p times 10\n"
                              "run p x.bin times 3\n"
                              "measure n = sum(reads)\n"
                              "print \"{n:>6} reads of ${who}\"\n"
                              "expect n > 0\n");
    CHECK(e.title == "Reads");
    REQUIRE(e.params.size() == 1);
    CHECK(e.params[0].value == "cat");
    CHECK(e.params[0].help == "whose");
    // Assembly stands where it stood, so that the assembler's line numbers are the experiment's.
    CHECK(e.assembly.starts_with("\n\n\n.map counts array"));
    CHECK(e.assembly.find("\n\n.program p \"xdp\"\nr0 = 2\nexit\n\n") != std::string::npos);
    REQUIRE(e.sources.size() == 1);
    CHECK(e.sources[0].path == "lib.bpf.o");
    REQUIRE(e.attachments.size() == 1);
    CHECK(e.attachments[0].way == "interface");
    CHECK(e.attachments[0].egress);
    REQUIRE(e.probes.size() == 1);
    REQUIRE(e.probes[0].names.size() == 2);
    CHECK(e.probes[0].names[0].size() == 2);
    CHECK(e.probes[0].names[0][1].text == "kprobe:b");
    CHECK(shown(*e.probes[0].condition) == "(comm == \"cat\")");
    REQUIRE(e.probes[0].body.size() == 3);
    CHECK(shown(e.probes[0].body[0].target) == "@reads[comm, arg0.f_flags]");
    REQUIRE(e.probes[0].body[2].otherwise.size() == 1);
    CHECK(e.probes[0].body[2].otherwise[0].then[0].fields[1].name == "n");
    REQUIRE(e.formats.size() == 1);
    REQUIRE(e.formats[0].pieces.size() == 3);
    CHECK(e.formats[0].pieces[0].width == 7);
    CHECK(e.formats[0].pieces[1].words == " {");
    CHECK(e.formats[0].pieces[1].right);
    CHECK(e.formats[0].pieces[2].words == "}");
    REQUIRE(e.steps.size() == 13);
    CHECK(e.steps[1].command == std::vector<std::string>{"sh", "-c", "cat \"$HOME/x y\" # no comment"});
    CHECK(e.steps[2].for_workload);
    CHECK(e.steps[3].seconds == 0.5);
    CHECK(e.steps[4].count == 100);
    CHECK(e.steps[4].seconds == 2);
    CHECK(e.steps[5].body.size() == 3);
    CHECK(e.steps[5].body[0].style == Style::json);
    CHECK(e.steps[6].key.has_value());
    CHECK(e.steps[7].text == "f");
    CHECK(e.steps[8].name == "p");
    CHECK(e.steps[8].count == 10);
    CHECK(e.steps[9].text == "x.bin");
    CHECK(e.steps[9].count == 3);
    CHECK(e.steps[11].pieces[1].words == " reads of cat");
}

TEST_CASE("experiment parse: C ends with the brace that belongs to its first one") {
    const Experiment e =
        good("param n = 3\nc {\nint f(void) {\n    return '}' + $n; // }\n}\n/* } */\n#define x \"}\"\n}\nwait 1s\n");
    REQUIRE(e.sources.size() == 1);
    CHECK(e.sources[0].text == "\n\nint f(void) {\n    return '}' + 3; // }\n}\n/* } */\n#define x \"}\"\n");
    CHECK(e.steps.size() == 1);
    CHECK(mistakes("c {\nint f(void) {\n}\n").find("never closed") != std::string::npos);
}

TEST_CASE("experiment parse: a parameter's value is text before anything else is read") {
    const char *text = "param probe = kprobe:vfs_read\nparam n = 3\non $probe { @n[$n] = 1 }\n";
    CHECK(good(text).probes[0].names[0][0].text == "kprobe:vfs_read");
    const Experiment set = good(text, {{"probe", "fentry:vfs_write"}, {"n", "arg2"}});
    CHECK(set.probes[0].names[0][0].text == "fentry:vfs_write");
    CHECK(shown(set.probes[0].body[0].target) == "@n[arg2]");
    CHECK(mistakes(text, {{"prob", "x"}}) == "x.exp: there is no parameter prob\n  hint: did you mean `probe`?\n");
}

TEST_CASE("experiment parse: mistakes have a place, a line, a caret and the nearest word") {
    CHECK(mistakes("pirnt reads\n") == "x.exp:1:1: `pirnt` begins no line of an experiment\n"
                                       "  1 | pirnt reads\n"
                                       "    | ^\n"
                                       "  hint: did you mean `print`?\n");
    CHECK(mistakes("print reads as tabel\n") == "x.exp:1:16: a map is printed as table, hist, log2 or json, not `tabel`\n"
                                                "  1 | print reads as tabel\n"
                                                "    |                ^\n"
                                                "  hint: did you mean `table`?\n");
    CHECK(mistakes("on kprobe:f {\n    @a[] = 1\n}\nwait 2x\n") ==
          "x.exp:2:8: expected a key between the brackets\n"
          "  2 |     @a[] = 1\n"
          "    |        ^\n"
          "x.exp:4:6: expected a time, or `workload`, like 2s, 500ms or 1m, "
          "found 2x\n"
          "  4 | wait 2x\n"
          "    |      ^\n");
    CHECK(mistakes("param n = 1\nexpect $m > 0\n") == "x.exp:2:8: there is no parameter m\n"
                                                      "  2 | expect $m > 0\n"
                                                      "    |        ^\n"
                                                      "  hint: param m = VALUE makes one; `$$` is one `$`\n");
    CHECK(mistakes("") == "x.exp: there is nothing to do in it\n  hint: `rawbpf help experiment` describes experiments; "
                          "`rawbpf run --list` has some\n");
}

TEST_CASE("experiment parse: each kind of mistake is one, and reading goes on behind it") {
    struct Case {
        const char *text, *says;
    };
    constexpr Case kCases[] = {
        {"param = 1", "expected a parameter's name"},
        {"param n", "expected `=`"},
        {"param n = 1\nparam n = 2", "there is a parameter n already, in line 1"},
        {"asm {\nexit", "this block is never closed"},
        {".program p \"xdp\"", "stands in a block: asm {"},
        {"object", "expected an object file"},
        {"c {", "this block is never closed"},
        {"license GPL", "expected a text in quotes"},
        {"attach", "expected a program"},
        {"attach p", "expected a place"},
        {"attach p interfaze lo", "did you mean `interface`?"},
        {"attach p interface", "expected the name of a network interface"},
        {"on { }", "expected a probe"},
        {"on kprobe:f", "expected `{`"},
        {"on kprobe:f {\n@a = 1", "this block is never closed"},
        {"on kprobe:f { @a = }", "expected a value"},
        {"on kprobe:f { @a * 1 }", "expected `=`"},
        {"on kprobe:f { retrun }", "did you mean `return`?"},
        {"on kprobe:f { emit }", "expected an event's name"},
        {"on kprobe:f { emit e pid, pid }", "there is a field pid already"},
        {"on kprobe:f { let = 1 }", "expected a name"},
        {"on kprobe:f { @a->b = 1 }", "only a whole element"},
        {"format e {pid}", "expected a text in quotes"},
        {"format e \"{pid\"", "expected `}`"},
        {"format e \"pid}\"", "a `}` without a `{`"},
        {"format e \"{pid:900}\"", "at most 500"},
        {"format e \"a\"\nformat e \"b\"", "has a format already"},
        {"workload", "expected a command"},
        {"workload sh -c 'x", "never closed"},
        {"events until 0", "at least 1"},
        {"events util 3", "expected `until N` or `for TIME`"},
        {"every 1s {\nprint a", "this block is never closed"},
        {"every 1s {\nfoo\n}", "begins no line"},
        {"print", "expected a map, or a text"},
        {"print a top", "expected how many entries"},
        {"print a b", "expected the end of the line, found `b`"},
        {"set", "expected a variable"},
        {"set x =", "expected a value"},
        {"trigger lib.so", "expected a function of a shared library"},
        {"packet", "expected a file"},
        {"measure = 1", "expected a name"},
        {"expect", "expected a value, found the end of the line"},
        {"expect 1 >", "expected a value"},
        {"expect (1", "never closed"},
        {"expect 99999999999999999999", "more than 64 bits"},
        {"expect 3x", "`x` is no unit"},
        {"expect rejected \"x", "never closed"},
    };
    for (const Case &each : kCases) {
        CAPTURE(std::string(each.text));
        // What stands behind is read as well: one mistake doesn't hide the next.
        const std::string all = mistakes(std::string(each.text) + "\n}\nwait 1z\n");
        const std::string first = mistakes(each.text);
        CHECK(first.find(each.says) != std::string::npos);
        CHECK(first.find("    | ") != std::string::npos);
        if (first.find("never closed") == std::string::npos && first.find("expected `{`") == std::string::npos)
            CHECK(all.find("wait 1z") != std::string::npos);
    }
}

TEST_CASE("experiment parse: any piece of a text ends in an experiment or in mistakes") {
    const std::string text =
        "param a = 1\non kprobe:f | kprobe:g if $a > 1 {\n  let x = (arg0->a[1] + 2)\n  @m[comm, x] = lhist(x, 0, 9, 3)\n"
        "  if x { emit e pid, s = str(x) } else { return }\n}\nasm {\n.program p \"xdp\"\nexit\n}\n"
        "format e \"{pid:3} {s}\"\nevery 1s times 2 {\n print m top 3\n}\nexpect m[\"a\", 1] >= 'a'\n";
    for (size_t end = 0; end <= text.size(); ++end) {
        const Parsed parsed = parse(text.substr(0, end), "x.exp");
        CHECK(parsed.mistakes.count() <= 20);
        std::string bent = text;
        if (end < text.size()) bent[end] = '{';
        CHECK(parse(bent, "x.exp").mistakes.count() <= 20);
    }
    // Depth and size are bounded.
    CHECK(mistakes("expect " + std::string(5000, '(')).find("nested") != std::string::npos);
    std::string deep = "on kprobe:f { ";
    for (int i = 0; i < 500; ++i) deep += "if 1 { ";
    CHECK(mistakes(deep).find("nested") != std::string::npos);
    CHECK(mistakes(std::string(20'000, 'x')).find("a line has at most") != std::string::npos);
}
