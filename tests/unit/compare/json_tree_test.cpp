// JSON: what is read, and what is said of what isn't JSON.
#include "programs/compare/json_tree.h"

#include <string>
#include <string_view>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::compare;

namespace {

double number(std::string_view text) {
    const Result<Json> value = parse_json(text);
    REQUIRE(value);
    REQUIRE(value->is(Json::Kind::number));
    return value->number;
}
std::string complaint(std::string_view text) {
    const Result<Json> value = parse_json(text);
    return value ? "taken" : value.error().message();
}

} // namespace

TEST_CASE("json tree: values of every kind") {
    const Result<Json> value =
        parse_json(R"( {"a":[1,-2.5,true,false,null],"b":{"c":"x\n\"\u00e9\ud83d\ude00"}, "e":{}, "f":[]} )");
    REQUIRE(value);
    const Json *a = value->member("a");
    REQUIRE(a);
    REQUIRE(a->items.size() == 5);
    CHECK(a->items[0].number == 1);
    CHECK(a->items[1].number == -2.5);
    CHECK(a->items[2].truth);
    CHECK(!a->items[3].truth);
    CHECK(a->items[4].is(Json::Kind::null));
    CHECK(value->member("b")->text_of("c") == "x\n\"\xc3\xa9\xf0\x9f\x98\x80");
    CHECK(value->member("e")->items.empty());
    CHECK(value->member("f")->is(Json::Kind::list));
    CHECK(value->member("g") == nullptr);
    CHECK(a->member("a") == nullptr);
    CHECK(value->text_of("a").empty());
    CHECK(parse_json(R"("\ud83dx")")->text == "\xef\xbf\xbdx"); // half of a pair
}

TEST_CASE("json tree: numbers") {
    CHECK(number("0") == 0);
    CHECK(number("-0") == 0);
    CHECK(number("9007199254740991") == 9007199254740991.0);
    CHECK(number("41.5") == 41.5);
    CHECK(number("1e3") == 1000);
    CHECK(number("25E-2") == 0.25);
    CHECK(number("1.5e+2") == 150);
    CHECK(number("123456789012345678901234567890") == doctest::Approx(1.2345678901234568e29));
    CHECK(number("0e999999999") == 0);
    CHECK(number("1e-999999999") == 0);
    CHECK(complaint("1e400") == "column 6: expected a number below 1e300");
}

TEST_CASE("json tree: what is no JSON") {
    CHECK(complaint("") == "column 1: expected a value");
    CHECK(complaint("{") == "column 2: expected a name in quotes");
    CHECK(complaint("{\"a\"}") == "column 5: expected ':'");
    CHECK(complaint("{\"a\":1,}") == "column 8: expected a name in quotes");
    CHECK(complaint("[1 2]") == "column 4: expected ',' or ']'");
    CHECK(complaint("[1],") == "column 4: expected nothing more");
    CHECK(complaint("01") == "column 1: expected a number without a 0 in front");
    CHECK(complaint("1.") == "column 3: expected a digit");
    CHECK(complaint("-") == "column 2: expected a value");
    CHECK(complaint("nul") == "column 1: expected a value");
    CHECK(complaint("\"a") == "column 3: expected the end of a text, '\"'");
    CHECK(complaint("\"\\x\"") == "column 3: expected an escape");
    CHECK(complaint("\"\\u12g4\"") == "column 6: expected four hexadecimal digits");
    CHECK(complaint(std::string(40, '[')) == "column 34: expected at most 32 levels");
}

TEST_CASE("json tree: cut anywhere it is refused, and nothing breaks") {
    const std::string_view whole = R"({"type":"figure","values":[1.5,-2e3,null,true],"text":"a\u00e9\\"})";
    REQUIRE(parse_json(whole));
    for (size_t end = 0; end < whole.size(); ++end) CHECK(!parse_json(whole.substr(0, end)));
}
