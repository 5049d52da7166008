// A sweep as a picture: what stands in it, where the dots lie, and odd numbers.
#include "programs/compare/chart.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/format.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::compare;

namespace {

Figure figure(std::string subject, std::string name, std::vector<double> values) {
    Figure out;
    out.subject = std::move(subject);
    out.name = std::move(name);
    out.values = std::move(values);
    return out;
}
Document document(std::string name, std::vector<Figure> figures) {
    Document out;
    out.name = std::move(name);
    out.figures = std::move(figures);
    return out;
}
size_t count(std::string_view text, std::string_view what) {
    size_t out = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++out;
    return out;
}
// The x of the median's dot in the n-th row.
double dot(std::string_view text, size_t row) {
    size_t at = 0;
    for (size_t i = 0; i <= row; ++i) {
        at = text.find("r=\"4.5\"", at + 1);
        REQUIRE(at != text.npos);
    }
    const size_t begin = text.rfind("<circle cx=\"", at) + 12;
    return std::stod(std::string(text.substr(begin, 10)));
}

} // namespace

TEST_CASE("chart: a panel a figure, a row a kernel and variant, a colour a variant") {
    const std::vector<Document> kernels = {
        document("6.1", {figure("block=4k", "ns", {100, 110, 120}), figure("block=64k", "ns", {200, 200, 200}),
                         figure("block=4k", "reads", {7})}),
        document("6.12", {figure("block=4k", "ns", {150, 150, 150}), figure("block=64k", "ns", {90, 100, 105})})};
    const std::string out = chart(kernels, {});
    CHECK(count(out, "class=\"name\"") == 2);
    CHECK(count(out, "class=\"panel\"") == 2);
    CHECK(count(out, "r=\"4.5\"") == 5);
    CHECK(count(out, ">block=4k<") == 3);
    CHECK(count(out, ">6.1<") == 2);  // once a panel
    CHECK(count(out, ">6.12<") == 1); // its variants stand below it
    CHECK(out.find("<title>ns 6.12 block=64k: 100, of 3 values</title>") != out.npos);
    // 110 < 200, 150 > 100; and equal values lie at one place.
    CHECK(dot(out, 0) < dot(out, 1));
    CHECK(dot(out, 2) > dot(out, 3));
    CHECK(count(out, "r=\"2\"") == 3 + 1 + 1 + 3);
    CHECK(out.find("stroke-width") == out.npos); // of three values there is no interval
    const std::string_view colour = "<g class=\"row c";
    std::vector<std::string> colours;
    for (size_t at = out.find(colour); at != out.npos; at = out.find(colour, at + 1))
        colours.push_back(out.substr(at + colour.size(), 1));
    REQUIRE(colours.size() == 5);
    CHECK((colours[0] == colours[2] && colours[1] == colours[3] && colours[0] != colours[1] && colours[4] == colours[0]));
}

TEST_CASE("chart: the figures that are asked for; words are left out, and what is too much is said") {
    Figure word = figure("p", "hash", {});
    word.word = "abc";
    std::vector<Figure> many = {word};
    for (int i = 0; i < 45; ++i) many.push_back(figure("p", format("f{}", i), {1.0 * i}));
    const std::vector<Document> one = {document("a", many)};
    const std::string all = chart(one, {});
    CHECK(count(all, "class=\"panel\"") == 40);
    CHECK(all.find("5 more figures: --figure NAME chooses") != all.npos);
    CHECK(all.find("hash") == all.npos);
    const std::vector<std::string_view> only = {"f3", "f44"};
    CHECK(count(chart(one, only), "class=\"panel\"") == 2);
    const std::vector<std::string_view> words = {"hash"};
    CHECK(chart(one, words).find("No figure with numbers") != std::string::npos);
}

TEST_CASE("chart: an interval of six values, a dot of each; rows of one name stay apart") {
    const Document six = document("same", {figure("", "ns", {1, 2, 3, 4, 5, 6})});
    const std::vector<Document> twice = {six, six};
    const std::string out = chart(twice, {});
    CHECK(count(out, "stroke-width=\"2\"") == 2);
    CHECK(count(out, "r=\"2\"") == 12);
    CHECK(count(out, ">same<") == 2);
    CHECK((count(out, "row c0") == 1 && count(out, "row c1") == 1));
    const std::string path(200, 'd');
    const std::vector<Document> paths = {document("/" + path + "/before.json", six.figures),
                                         document("/" + path + "/after.json", six.figures)};
    const std::string named = chart(paths, {});
    CHECK((named.find("/before.json</text>") != named.npos && named.find("/after.json</text>") != named.npos));
}

TEST_CASE("chart: numbers of an axis differ, however close") {
    for (const auto &[low, high] : {std::pair{123.41, 123.46},
                                    {1234.51, 1234.58},
                                    {41.231, 41.249},
                                    {1e12, 1e12 + 7},
                                    {0.0, 3e17},
                                    {-2e-7, 1e-7},
                                    {1e15, 1e15 + 100},
                                    {1.7e18, 1.7e18 + 1e9},
                                    {1, 1 + 4e-9}}) {
        const std::vector<Document> one = {document("a", {figure("", "ns", {low, high})})};
        const std::string out = chart(one, {});
        std::vector<std::string> numbers;
        for (size_t at = out.find("faint middle\">"); at != out.npos; at = out.find("faint middle\">", at + 1))
            numbers.push_back(out.substr(at + 14, out.find('<', at) - at - 14));
        REQUIRE(numbers.size() >= 2);
        for (size_t i = 1; i < numbers.size(); ++i) CHECK(numbers[i] != numbers[i - 1]);
    }
}

TEST_CASE("chart: hostile names and odd numbers") {
    const std::string long_name(1 << 20, 'x'), marks(1 << 16, '\xcc');
    const std::vector<std::vector<double>> odd = {{0},
                                                  {0, 0},
                                                  {-5, 5},
                                                  {9e299, -9e299},
                                                  {1e-300, 2e-300},
                                                  {4e18, 4e18 + 1024},
                                                  {1e308, -1e308},
                                                  {5e-324, 0},
                                                  {5e-324},
                                                  {5e-324, 5e-324},
                                                  {1e17, 1e17 + 16, 1e17 + 32}};
    for (const std::vector<double> &values : odd) {
        const std::vector<Figure> figures = {figure(long_name, marks, values), figure("&\"\n", "\x1b[31m", values)};
        const std::vector<Document> both = {document("</svg><script>", figures), document("b", figures)};
        const std::string out = chart(both, {});
        CHECK(out.find("<script") == out.npos);
        CHECK((out.find("script") != out.npos || values[0] == 1e308)); // it is there, as text; what is too large has no row
        CHECK(out.find('\x1b') == out.npos);
        CHECK(out.find("nan") == out.npos);
        CHECK(out.find("inf\"") == out.npos);
        CHECK(out.find("&#10;") == out.npos);
        CHECK(out.size() < 64 << 10);
    }
}

TEST_CASE("chart: a hundred thousand rows are counted, not drawn") {
    std::vector<Figure> many;
    for (int i = 0; i < 100'000; ++i) many.push_back(figure(format("p{}", i), "insns", {1.0 * i}));
    const std::vector<Document> both = {document("a", many), document("b", many)};
    const std::string out = chart(both, {});
    CHECK(out.find("199800 more rows") != out.npos);
    CHECK((count(out, ">a<") == 1 && count(out, ">b<") == 1)); // each has its share
    CHECK(out.size() < 256 << 10);
}

TEST_CASE("chart: ticks are round, inside, and few") {
    CHECK(ticks(0, 10) == std::vector<double>{0, 2, 4, 6, 8, 10});
    CHECK(ticks(95, 104) == std::vector<double>{96, 98, 100, 102, 104});
    CHECK(ticks(-3, 3) == std::vector<double>{-2, 0, 2});
    for (double low = 1e-200; low < 1e200; low *= 3.7)
        for (const double range : {low * 1e-9, low * 0.01, low, low * 1000}) {
            const std::vector<double> out = ticks(low, low + range);
            CHECK(out.size() <= 7);
            CHECK(out.size() >= 2);
            for (const double tick : out) CHECK((tick >= low * (1 - 1e-12) && tick <= (low + range) * (1 + 1e-12)));
        }
}
