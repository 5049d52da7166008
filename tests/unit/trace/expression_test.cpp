// The filter language: how expressions are read, and what is said of those that aren't any.
#include "programs/trace/expression.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

// The tree with every pair in parentheses.
std::string shown(const Expression &e, uint32_t index) {
    const Node &n = e.nodes[index];
    switch (n.kind) {
    case Node::Kind::number: return std::to_string(n.number);
    case Node::Kind::text: return "\"" + n.text + "\"";
    case Node::Kind::name: {
        std::string out = n.text;
        for (const Step &step : n.steps) out += step.member.empty() ? "[" + std::to_string(step.index) + "]" : "." + step.member;
        return out;
    }
    case Node::Kind::unary: return std::string(operator_text(n.op)) + shown(e, n.left);
    case Node::Kind::binary:
        return "(" + shown(e, n.left) + " " + std::string(operator_text(n.op)) + " " + shown(e, n.right) + ")";
    }
    return "?";
}
std::string read(std::string_view text) {
    Result<Expression> e = parse_expression(text);
    return e ? shown(*e, e->root) : e.error().context;
}

} // namespace

TEST_CASE("trace expression: operators bind as C's do") {
    CHECK(read("arg2 > 4096 && comm == \"cat\"") == "((arg2 > 4096) && (comm == \"cat\"))");
    CHECK(read("a || b && c") == "(a || (b && c))");
    CHECK(read("a | b ^ c & d") == "(a | (b ^ (c & d)))");
    CHECK(read("a & 3 == 1") == "(a & (3 == 1))"); // C's trap stays C's
    CHECK(read("1 + 2 * 3 - 4") == "((1 + (2 * 3)) - 4)");
    CHECK(read("a << 2 >= b") == "((a << 2) >= b)");
    CHECK(read("!(a == 1) || -b < ~c") == "(!(a == 1) || (-b < ~c))");
    CHECK(read("a - - 1") == "(a - -1)");
    CHECK(read("a->b > 1") == "(a.b > 1)");
    CHECK(read("a-1>b") == "((a - 1) > b)");
}

TEST_CASE("trace expression: values") {
    CHECK(read("0x10") == "16");
    CHECK(read("18446744073709551615") == "18446744073709551615");
    CHECK(read("10us") == "10000");
    CHECK(read("2ms") == "2000000");
    CHECK(read("4k") == "4096");
    CHECK(read("'a'") == "97");
    CHECK(read("'\\n'") == "10");
    CHECK(read("\"a\\\"b\\x41\"") == "\"a\"bA\"");
    CHECK(read("file->f_path.dentry->d_name") == "file.f_path.dentry.d_name");
    CHECK(read("a[3].b[0x10]") == "a[3].b[16]");
}

TEST_CASE("trace expression: a mistake is shown at its place") {
    CHECK(read("arg2 > && comm") == "a value is expected, not `&`\n  arg2 > && comm\n         ^");
    CHECK(read("") == "a value is expected, and the filter ends\n  \n  ^");
    CHECK(read("(a == 1") == "this `(` is never closed\n  (a == 1\n  ^");
    CHECK(read("a = 1") == "`=` isn't a comparison\n  a = 1\n    ^");
    CHECK(read("a == 1)") == "`)` isn't expected here\n  a == 1)\n        ^");
    CHECK(read("a == \"x") == "this text is never closed\n  a == \"x\n       ^");
    CHECK(read("10q") == "`q` is no unit\n  10q\n    ^");
    CHECK(read("99999999999999999999") == "this number has more than 64 bits\n  99999999999999999999\n  ^");
    CHECK(read("a->") == "the name of a member is expected\n  a->\n     ^");
    CHECK(read("a[b]") == "an index is a number\n  a[b]\n    ^");
    CHECK(read("'ab'") == "a character and a `'` are expected\n  'ab'\n  ^");
    CHECK(read("\"\\q\"") == "`\\q` is no escape\n  \"\\q\"\n    ^");
    CHECK(read("\"a\\0b\"") == "a text ends at a zero byte, and this one has one inside\n  \"a\\0b\"\n  ^");
}

TEST_CASE("trace expression: size and depth are bounded") {
    CHECK(read(std::string(100, '(') + "a" + std::string(100, ')')).find("levels deep") != std::string::npos);
    CHECK(read(std::string(100, '!') + "a").find("levels deep") != std::string::npos);
    std::string many = "a";
    for (int i = 0; i < 300; ++i) many += " + a";
    CHECK(read(many).find("more than 256 parts") != std::string::npos);
}

TEST_CASE("trace expression: what is shown is a name and its members") {
    CHECK(parse_path("file->f_inode->i_size"));
    CHECK_FALSE(parse_path("a + b"));
    CHECK_FALSE(parse_path("3"));
}
