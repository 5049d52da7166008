// Variants of an experiment, their turns, and what their figures look like.
#include "programs/experiment/series.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::experiment;

namespace {

std::string names_of(const std::vector<std::string_view> &given) {
    const Result<std::vector<Variant>> variants = variants_of(given);
    if (!variants) return variants.error().context;
    std::string out;
    for (const Variant &variant : *variants) {
        out += "[" + variant.name;
        for (const Setting &setting : variant.settings) out += " " + setting.name + ":" + setting.value;
        out += "]";
    }
    return out;
}

} // namespace

TEST_CASE("series: every combination of values") {
    CHECK(names_of({}) == "[]");
    CHECK(names_of({"a=1"}) == "[ a:1]");
    CHECK(names_of({"a="}) == "[ a:]");
    CHECK(names_of({"a=1,2", "b=x", "c=3,4"}) ==
          "[a=1 c=3 a:1 b:x c:3][a=1 c=4 a:1 b:x c:4][a=2 c=3 a:2 b:x c:3][a=2 c=4 a:2 b:x c:4]");
    CHECK(names_of({"a=1\\,2"}) == "[ a:1,2]");
    CHECK(names_of({"a=\\n=1"}) == "[ a:\\n=1]");
    CHECK(names_of({"a"}) == "--set a: expected NAME=VALUE");
    CHECK(names_of({"=1"}) == "--set =1: expected NAME=VALUE");
    CHECK(names_of({"a=1,"}) == "--set a=1,: one of its values is empty");
    CHECK(names_of({"a=1", "b=2", "a=3"}) == "--set a is given twice");
    std::string many = "1";
    for (int i = 2; i <= 32; ++i) many += "," + std::to_string(i);
    CHECK(names_of({"a=" + many, "b=" + many}) == "--set: more than 1000 combinations of values");
}

TEST_CASE("series: in each round each variant has its turn, and each begins as often") {
    for (size_t variants : {1, 2, 3, 7}) {
        std::set<size_t> first;
        for (size_t round = 0; round < variants; ++round) {
            std::set<size_t> turns;
            for (size_t n = 0; n < variants; ++n) turns.insert(turn_of(round, n, variants));
            CHECK(turns.size() == variants);
            first.insert(turn_of(round, 0, variants));
        }
        CHECK(first.size() == variants);
    }
}

TEST_CASE("series: figures side by side") {
    using Measures = std::vector<std::pair<std::string, experiment::Number>>;
    Series series({"n=1", "n=\"2\""});
    series.add(1, Measures{{"calls", 20}, {"ns", 5.5L}});
    for (const int calls : {10, 12, 11, 10, 13, 10}) series.add(0, Measures{{"calls", calls}});
    std::string text, csv, json;
    series.append_text(text);
    series.append_csv(csv);
    series.append_json(json);
    CHECK(text == "variant  figure  values  minimum  median  95 % interval  MAD\n"
                  "n=1      calls        6       10    10.5  10 to 13       0.5\n"
                  "n=\"2\"    calls        1       20      20  -                0\n"
                  "n=\"2\"    ns           1      5.5     5.5  -                0\n"
                  "An interval takes 6 values or more (--repeat 6).\n");
    CHECK(csv == "variant,figure,values,minimum,median,low,high,mad\n"
                 "n=1,calls,6,10,10.5,10,13,0.5\n"
                 "\"n=\"\"2\"\"\",calls,1,20,20,,,0\n"
                 "\"n=\"\"2\"\"\",ns,1,5.5,5.5,,,0\n");
    CHECK(
        json.substr(0, json.find('\n')) ==
        R"({"type":"figure","variant":"n=1","figure":"calls","values":[10,12,11,10,13,10],"minimum":10,"median":10.5,"low":10,"high":13,"mad":0.5})");
}

TEST_CASE("series: what somebody else has collected stands with what runs measure") {
    Series series({"5.10", "6.12"});
    const std::vector<double> some = {3, 1, 2};
    series.add(1, "ns", some);
    series.add(0, "ns", some);
    const std::pair<std::string, experiment::Number> measured[] = {{"ns", 4}};
    series.add(0, measured);
    std::string csv;
    series.append_csv(csv);
    CHECK(csv == "variant,figure,values,minimum,median,low,high,mad\n5.10,ns,4,1,2.5,,,1\n6.12,ns,3,1,2,,,1\n");
}
