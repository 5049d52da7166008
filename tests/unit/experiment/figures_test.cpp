// From bytes of maps to what is shown and what expectations read.
#include "programs/experiment/figures.h"

#include <cstring>
#include <limits>
#include <map>

#include "programs/experiment/evaluate.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/show.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::experiment;

namespace {

std::string words(std::initializer_list<uint64_t> values) {
    std::string out;
    for (const uint64_t value : values) out.append(reinterpret_cast<const char *>(&value), 8);
    return out;
}
MapView view(std::string name, Figures figures) {
    MapView out;
    out.map = std::move(name);
    out.key = {{"k", Show::number, 0, 8, 0}};
    out.value = {{"value", Show::number, 0, 8, 0}};
    out.figures = figures;
    return out;
}
FigureTable counts() {
    MapView v = view("counts", Figures::sum);
    v.value[0].name = v.figure = "count";
    return figures_of(v, {8, 8, 2}, bytes_of(words({7, 9})), bytes_of(words({1, 2, 30, 0})), false);
}
FigureTable stats() {
    // count, sum, least, most of two CPUs; the second one has seen nothing, so its 0s are no least value
    return figures_of(view("us", Figures::stats), {8, 32, 2}, bytes_of(words({5})), bytes_of(words({3, 30, 4, 20, 0, 0, 0, 0})),
                      false);
}
FigureTable histogram() {
    MapView v = view("ns", Figures::log2);
    return figures_of(v, {16, 8, 1}, bytes_of(words({5, 3, 5, 1, 6, 0})), bytes_of(words({8, 1, 2})), false);
}

struct Known final : Facts {
    std::map<std::string, FigureTable> tables;
    std::map<std::string, experiment::Number> numbers;
    Result<const FigureTable *> map(const std::string &name) override {
        const auto found = tables.find(name);
        return found == tables.end() ? nullptr : &found->second;
    }
    std::optional<experiment::Number> number(const std::string &name) override {
        const auto found = numbers.find(name);
        return found == numbers.end() ? std::optional<experiment::Number>() : found->second;
    }
    const btf::Btf *types(const std::string &) override { return nullptr; }
};

} // namespace

TEST_CASE("experiment figures: values of all CPUs are one number") {
    const FigureTable table = counts();
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].sum == 30); // the largest first
    CHECK(table.rows[1].sum == 3);
    const FigureTable us = stats();
    REQUIRE(us.rows.size() == 1);
    CHECK(us.rows[0].count == 3);
    CHECK(us.rows[0].least == 4);
    CHECK(us.rows[0].most == 20);
    CHECK(us.average(us.rows[0]) == 10);
}

TEST_CASE("experiment figures: buckets of a key are one row") {
    const FigureTable table = histogram();
    REQUIRE(table.rows.size() == 2);
    CHECK(table.rows[0].count == 9);
    CHECK(table.rows[0].buckets == std::vector<uint64_t>{0, 1, 0, 8});
    const BucketRange first = bucket_range(table.view, 0), third = bucket_range(table.view, 3);
    CHECK(!first.has_least);
    CHECK(first.most == 0);
    CHECK(third.least == 4);
    CHECK(third.most == 7);
    MapView linear = view("l", Figures::linear);
    linear.from = 10, linear.to = 30, linear.step = 10, linear.buckets = 4;
    CHECK(bucket_range(linear, 0).most == 9);
    CHECK(bucket_range(linear, 1).least == 10);
    CHECK(bucket_range(linear, 2).most == 29);
    CHECK(!bucket_range(linear, 3).has_most);
}

TEST_CASE("experiment figures: expectations read maps, totals and names") {
    Known known;
    known.tables = {{"counts", counts()}, {"us", stats()}, {"ns", histogram()}};
    known.numbers = {{"events.lost", 0}, {"seconds", 2}};
    const auto value = [&](const std::string &text) {
        const Parsed parsed = parse("expect " + text, "x.exp");
        REQUIRE(static_cast<bool>(parsed));
        const Result<experiment::Number> out = evaluate(parsed.experiment.steps[0].value, known);
        REQUIRE(static_cast<bool>(out));
        return number_text(*out);
    };
    CHECK(value("counts[7]") == "3");
    CHECK(value("counts[8]") == "0"); // what there isn't
    CHECK(value("sum(counts) + entries(counts) * 100") == "233");
    CHECK(value("max(counts) - min(counts)") == "27");
    CHECK(value("us[5].avg") == "10");
    CHECK(value("us[5].min + us[5].max") == "24");
    CHECK(value("ns[5]") == "9");
    CHECK(value("1 / seconds") == "0.5"); // real numbers, as one means it
    CHECK(value("1 / events.lost") == "0");
    CHECK(value("7 / seconds % (3 / seconds)") == "0.5"); // as fmod(3)
    CHECK(value("0 - 7 / seconds % (3 / seconds)") == "-0.5");
    constexpr bool kExact = std::numeric_limits<experiment::Number>::digits >= 64; // 32-bit ARM's have 53 bits
    if (kExact) CHECK(value("18446744073709551615 % 10") == "5");
    CHECK(value("7 % events.lost") == "0");
    CHECK(value("7 % (18446744073709551615 * 18446744073709551615)") == "7");
    CHECK(value("events.lost == 0 && counts[9] >= 30") == "1");
    if (kExact) CHECK(value("18446744073709551615") == "18446744073709551615");
    CHECK(value("9007199254740991") == "9007199254740991");
    CHECK(value("int(4294967295)") == "-1");
    CHECK(value("int(18446744073709551615) == -1") == "1");
    CHECK(value("int(0 - 1)") == "-1");
    CHECK(value("int(4294967296 + counts[7])") == "3");
    CHECK(value("swap16(256) + swap32(1)") == "16777217");
    std::vector<std::pair<std::string, experiment::Number>> parts;
    const Parsed parsed = parse("expect counts[7] > sum(us)", "x.exp");
    (void)evaluate(parsed.experiment.steps[0].value, known, &parts);
    REQUIRE(parts.size() == 2);
    CHECK(parts[0].first == "counts[7]");
    CHECK(parts[1].first == "sum(us)");
}

TEST_CASE("experiment figures: names that mean nothing are told with the nearest one") {
    const FigureTable table = counts(), us = stats();
    KnownNames known{{&table.view, &us.view}, {"events.lost", "events.count"}};
    const auto mistakes = [&](const std::string &text) {
        const Parsed parsed = parse("expect " + text, "x.exp");
        Mistakes out("x.exp");
        check_value(parsed.experiment.steps[0].value, known, parsed.experiment.lines, out);
        return out.any() ? out.all()[0].at.message + " | " + out.all()[0].hint : std::string();
    };
    CHECK(mistakes("counts[1] > 0 && events.lost == 0 && sum(us) > 0 && us[1].avg > 0") == "");
    CHECK(mistakes("count[1] > 0") == "there is no map, variable or measure count | did you mean `counts`?");
    CHECK(mistakes("events.lots == 0") == "there is no map, variable or measure events.lots | did you mean `events.lost`?");
    CHECK(mistakes("counts[1, 2] > 0") == "an element of counts has a key of 1 part | counts[k], or a total: sum(counts)");
    CHECK(mistakes("us[1].average > 0") == "the values of us have no member average | ");
    CHECK(mistakes("summ(counts) > 0") == "there is no function summ here | did you mean `sum`?");
    CHECK(mistakes("int(counts[1]) > 0") == "");
    CHECK(mistakes("int(count[1]) > 0") == "there is no map, variable or measure count | did you mean `counts`?");
    CHECK(mistakes("int(1, 2) > 0") == "int takes one value | ");
    CHECK(mistakes("int() > 0") == "int takes one value | ");
    CHECK(mistakes("int(1).a > 0") == "the value of int() has no members | ");
    CHECK(mistakes("inf(1) > 0") == "there is no function inf here | did you mean `int`?");
    CHECK(mistakes("str(counts[1]) > 0").starts_with("str() only works in probes | elsewhere there are int(X)"));
    CHECK(mistakes("sum(cuonts) > 0") == "there is no map cuonts | did you mean `counts`?");
    CHECK(mistakes("\"a\" == 1") == "a text isn't a number | texts are keys: counts[\"cat\"]");
}

TEST_CASE("experiment figures: tables, JSON and CSV") {
    std::string text;
    append_table(text, counts(), {});
    CHECK(text == "k  counts\n9      30\n7       3\n");
    text.clear();
    append_json_rows(text, counts(), {.style = Style::table, .top = 1});
    CHECK(text == "{\"type\":\"entry\",\"map\":\"counts\",\"key\":{\"k\":9},\"value\":30}\n");
    text.clear();
    append_csv_rows(text, counts(), {});
    CHECK(text == "map,k,count\r\ncounts,9,30\r\ncounts,7,3\r\n");
    text.clear();
    append_json_rows(text, stats(), {});
    CHECK(text.find("\"count\":3") != std::string::npos);
    CHECK(text.find("\"max\":20") != std::string::npos);
    text.clear();
    append_table(text, figures_of(view("none", Figures::plain), {8, 8, 0}, {}, {}, false), {});
    CHECK(text.ends_with("none: nothing\n"));
}

TEST_CASE("experiment: a process's arguments are shown with spaces between them") {
    const Column column{"args", Show::words, 0, 16, 0};
    const auto shown = [&](std::string_view bytes) {
        std::string all(bytes);
        all.resize(16);
        return cell(column, Bytes(reinterpret_cast<const std::byte *>(all.data()), all.size()), nullptr, nullptr);
    };
    CHECK(shown(std::string_view("ls\0-l\0/\0", 8)) == "ls -l /");
    CHECK(shown(std::string_view("a\0\0b\0", 5)) == "a  b");
    CHECK(shown("sixteen bytes of") == "sixteen bytes of");
    CHECK(shown("") == "");
}
