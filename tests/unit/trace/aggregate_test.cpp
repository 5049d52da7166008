// Groups of events: what the options say, how a value of the map is read, where buckets begin, and programs that add up.
#include "programs/trace/aggregate.h"

#include <algorithm>
#include <cstring>

#include "programs/trace/program.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::trace;

namespace {

std::string error_of(const Result<Measure> &result) { return result ? "fine" : result.error().message(); }
std::string error_of(const Result<std::vector<GroupKey>> &result) { return result ? "fine" : result.error().message(); }

ProbeSite place(ProbeKind kind, std::string function) {
    ProbeSite out;
    out.kind = kind;
    out.function = std::move(function);
    out.file = is_user_function(kind) ? "/bin/prog" : "";
    out.category = "sched";
    out.signature.known = true;
    out.signature.returns = {"long", Show::integer, 8, true};
    out.signature.parameters = {{"who", {"const char *", Show::text, 8, false}}, {"n", {"int", Show::integer, 4, true}}};
    out.offsets = {8, 16};
    return out;
}

AggregateOptions asked(std::string_view by, std::vector<std::pair<Measure::Kind, std::string_view>> measures) {
    AggregateOptions out;
    if (!by.empty()) out.by = parse_group_keys(by).value();
    for (const auto &[kind, text] : measures) out.measures.push_back(parse_measure(kind, text).value());
    return out;
}

Result<TraceUnit> unit_of(const ProbeSite &place, AggregateOptions asked_for, bool pair = false) {
    ProgramOptions options;
    options.mode = Mode::count;
    options.filters.own_pid = 1;
    options.pair = options.results = pair;
    options.aggregate = std::move(asked_for);
    return trace_unit({place}, options, nullptr);
}

void put(std::string &bytes, uint64_t word) { bytes.append(reinterpret_cast<const char *>(&word), 8); }

} // namespace

TEST_CASE("trace groups: keys") {
    const std::vector<GroupKey> keys = parse_group_keys("comm, arg0 ,function,n / 2, stack").value();
    REQUIRE(keys.size() == 5);
    CHECK(keys[4].kind == GroupKey::Kind::stack);
    CHECK(asked("pid,stack", {}).by_stack());
    CHECK_FALSE(asked("pid", {}).by_stack());
    CHECK(keys[0].name() == "comm");
    CHECK(keys[1].name() == "arg0");
    CHECK(keys[2].kind == GroupKey::Kind::function);
    CHECK(keys[3].name() == "n / 2");
    CHECK(error_of(parse_group_keys("")).find("`` has an empty key") != std::string::npos);
    CHECK(error_of(parse_group_keys("comm,")).find("has an empty key") != std::string::npos);
    CHECK(error_of(parse_group_keys("a,b,a")).find("`a` is there twice") != std::string::npos);
    CHECK(error_of(parse_group_keys("a,b +")).find("a value is expected") != std::string::npos);
}

TEST_CASE("trace groups: measures") {
    const Measure linear = parse_measure(Measure::Kind::linear, "ret, -10, 1k, 100").value();
    CHECK(linear.from == -10);
    CHECK(linear.to == 1024);
    CHECK(linear.step == 100);
    CHECK(linear.words() == 13); // 11 of them, the last one narrower; below; above
    CHECK(linear.name() == "lhist(ret)");
    CHECK(linear.bucket(0).has_least == false);
    CHECK(int64_t(linear.bucket(0).most) == -11);
    CHECK(int64_t(linear.bucket(1).least) == -10);
    CHECK(int64_t(linear.bucket(1).most) == 89);
    CHECK(int64_t(linear.bucket(11).least) == 990);
    CHECK(int64_t(linear.bucket(11).most) == 1023);
    CHECK(int64_t(linear.bucket(12).least) == 1024);
    CHECK(linear.bucket(12).has_most == false);
    const Measure whole =
        parse_measure(Measure::Kind::linear, "x,-9223372036854775807,9223372036854775807,9223372036854775807").value();
    CHECK(whole.words() == 4);
    const Measure log2 = parse_measure(Measure::Kind::log2, "n").value();
    CHECK(log2.words() == 66);
    CHECK(uint64_t(log2.bucket(1).least) == 0);
    CHECK(uint64_t(log2.bucket(2).most) == 1);
    CHECK(uint64_t(log2.bucket(3).least) == 2);
    CHECK(uint64_t(log2.bucket(65).least) == uint64_t{1} << 63);
    CHECK(uint64_t(log2.bucket(65).most) == UINT64_MAX);
    CHECK(error_of(parse_measure(Measure::Kind::linear, "n,1,2")).find("doesn't say which buckets") != std::string::npos);
    CHECK(error_of(parse_measure(Measure::Kind::linear, "n,0,1m,1")).find("1048576 buckets") != std::string::npos);
    CHECK(error_of(parse_measure(Measure::Kind::linear, "n,-9223372036854775807,9223372036854775807,1")).find("too many") !=
          std::string::npos);
    CHECK(error_of(parse_measure(Measure::Kind::linear, "n,5,5,1")).find("begin at 5 and end at 5") != std::string::npos);
    CHECK(error_of(parse_measure(Measure::Kind::linear, "n,0,9223372036854775808,1")).find("is a number") != std::string::npos);
    CHECK(error_of(parse_measure(Measure::Kind::sum, "")).find("a value is expected") != std::string::npos);
}

TEST_CASE("trace groups: programs for every kind of probe") {
    const AggregateOptions all = asked("who,n,function,comm", {{Measure::Kind::sum, "n"},
                                                               {Measure::Kind::average, "n"},
                                                               {Measure::Kind::least, "n"},
                                                               {Measure::Kind::most, "n * 2"},
                                                               {Measure::Kind::log2, "n"},
                                                               {Measure::Kind::log2, "pid"},
                                                               {Measure::Kind::linear, "n,-5,100,7"},
                                                               {Measure::Kind::linear, "cpu,0,8,1"}});
    for (const ProbeKind kind :
         {ProbeKind::uprobe, ProbeKind::kprobe, ProbeKind::fentry, ProbeKind::tracepoint, ProbeKind::syscall}) {
        const Result<TraceUnit> made = unit_of(place(kind, "f"), all);
        REQUIRE_MESSAGE(made, made.error().message());
        const GroupLayout &layout = made->group_layout.value();
        CHECK(layout.key_bytes == 64 + 8 + 8 + 16);
        CHECK(layout.parts[0].text);
        CHECK_FALSE(layout.parts[1].text);
        CHECK(layout.value_bytes == 8 * (4 + 66 + 66 + 17 + 10)); // how many is what the first histogram has
        CHECK_FALSE(layout.counted);
        CHECK(layout.cells[0].is_signed);
        CHECK(layout.per_cpu);
        const auto groups = std::find_if(made->unit.maps.begin(), made->unit.maps.end(),
                                         [](const MapDef &m) { return m.name == "trace_groups"; });
        REQUIRE(groups != made->unit.maps.end());
        CHECK(groups->key_size == layout.key_bytes);
        CHECK(groups->max_entries == layout.keys);
    }
    const Result<TraceUnit> paired = unit_of(
        place(ProbeKind::uprobe, "f"), asked("who", {{Measure::Kind::log2, "duration"}, {Measure::Kind::most, "ret"}}), true);
    REQUIRE_MESSAGE(paired, paired.error().message());
    CHECK(paired->groups.size() == 2);
}

TEST_CASE("trace groups: many CPUs share what would be too much for each") {
    AggregateOptions options = asked("n", {{Measure::Kind::log2, "n"}});
    options.cpus = 512;
    options.keys = 100'000;
    const Result<TraceUnit> made = unit_of(place(ProbeKind::uprobe, "f"), options);
    REQUIRE_MESSAGE(made, made.error().message());
    CHECK_FALSE(made->group_layout->per_cpu);
    CHECK(made->group_layout->keys == 100'000);
    options.keys = 0;
    const GroupLayout layout = *unit_of(place(ProbeKind::uprobe, "f"), options)->group_layout;
    CHECK(layout.per_cpu);
    CHECK(layout.keys == 256); // 64 MiB would be fewer
}

TEST_CASE("trace groups: what can't be had is said with a caret") {
    const auto wrong = [](const AggregateOptions &options, ProbeKind kind = ProbeKind::uprobe) {
        const Result<TraceUnit> made = unit_of(place(kind, "f"), options);
        return made ? std::string("fine") : made.error().message() + "\n" + made.error().hint;
    };
    CHECK(wrong(asked("whom", {})).find("did you mean who") != std::string::npos);
    CHECK(wrong(asked("", {{Measure::Kind::sum, "who"}})).find("--sum: who is a text, not a number\n  who\n  ^") !=
          std::string::npos);
    CHECK(wrong(asked("", {{Measure::Kind::log2, "comm"}})).find("--hist: comm is a text") != std::string::npos);
    CHECK(wrong(asked("", {{Measure::Kind::log2, "duration"}}), ProbeKind::tracepoint).find("are points in time") !=
          std::string::npos);
    CHECK(wrong(asked("ret", {}), ProbeKind::uprobe).find("--by: a call has no result yet") != std::string::npos);
    AggregateOptions wide = asked("who,arg0", {});
    wide.text_bytes = 104;
    CHECK(wrong(wide).find("--by: the keys have 208 bytes together") != std::string::npos);
}

TEST_CASE("trace groups: the CPUs' numbers are put together") {
    const AggregateOptions options =
        asked("n", {{Measure::Kind::sum, "n"}, {Measure::Kind::least, "n"}, {Measure::Kind::most, "n"}});
    GroupLayout layout;
    layout.parts = {{.type = {"int", Show::integer, 4, true}, .offset = 0}};
    layout.cells = {{8, true}, {16, true}, {24, true}};
    layout.key_bytes = 8;
    layout.value_bytes = 32;
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const auto kept = [](int64_t value) { return static_cast<uint64_t>(value) ^ kSign; };
    std::string keys, values;
    put(keys, 5);
    for (const uint64_t word : {uint64_t{2}, uint64_t(-7), ~kept(-8), kept(1)}) put(values, word); // this CPU: -8 and 1
    for (const uint64_t word : {uint64_t{1}, uint64_t{4}, ~kept(4), kept(4)}) put(values, word);   // and that one: 4
    put(keys, uint64_t(-3));
    for (int i = 0; i < 4; ++i) put(values, 0); // nothing here
    for (const uint64_t word : {uint64_t{9}, uint64_t(-90), ~kept(-10), kept(-10)}) put(values, word);
    std::vector<GroupRow> rows = group_rows(options, layout, keys, values, 2);
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].count == 3);
    CHECK(int64_t(rows[0].cells[0][0]) == -3);
    CHECK(int64_t(rows[0].cells[1][0]) == -8);
    CHECK(int64_t(rows[0].cells[2][0]) == 4);
    CHECK(int64_t(rows[1].cells[1][0]) == -10);
    CHECK(int64_t(rows[1].cells[2][0]) == -10);
    sort_groups(options, layout, true, rows);
    CHECK(rows[0].count == 9);
    sort_groups(options, layout, false, rows); // by the sum
    CHECK(rows[0].count == 3);

    std::vector<GroupRow> later = rows;
    later[0].count += 2;
    later[0].cells[0][0] += 10;
    const std::vector<GroupRow> since = groups_since(options, rows, later);
    REQUIRE(since.size() == 1);
    CHECK(since[0].count == 2);
    CHECK(int64_t(since[0].cells[0][0]) == 10);
    CHECK(int64_t(since[0].cells[1][0]) == -8); // of the whole time
    CHECK(group_rows(options, layout, keys.substr(0, 11), values, 2).size() == 1);
    CHECK(group_rows(options, layout, keys, values.substr(0, 40), 2).size() == 2); // short ones are zeroes, not read beyond
}

TEST_CASE("trace groups: text that others chose stays in its place") {
    AggregateOptions options = asked("who", {{Measure::Kind::log2, "n"}});
    GroupLayout layout;
    layout.parts = {{.type = {"const char *", Show::text, 8, false}, .text = true, .offset = 0, .bytes = 16}};
    layout.cells = {{0, true}};
    layout.key_bytes = 16;
    GroupRow row{std::string("a\x1b[2J,\"\n\0\0\0\0\0\0\0\0\0", 16).substr(0, 16), 3, {std::vector<uint64_t>(66)}};
    row.cells[0][65] = 3;
    const std::vector<std::string> functions;
    const GroupView view{options, layout, functions};
    const auto in = [&](GroupFormat format) {
        std::string out;
        append_groups(out, format, view, {row});
        return out;
    };
    CHECK(in(GroupFormat::text).find('\x1b') == std::string::npos);
    CHECK(in(GroupFormat::text).find("  [8E, 16E)           3 |########################################|\n") !=
          std::string::npos);
    CHECK(in(GroupFormat::csv) == "who,count,histogram,bucket_least,bucket_most,bucket_count\r\n"
                                  "\"a\x1b[2J,\"\"\n\",3,hist(n),9223372036854775808,18446744073709551615,3\r\n");
    CHECK(in(GroupFormat::prometheus).find("{who=\"a\x1b[2J,\\\"\\n\"} 3\n") != std::string::npos);
    CHECK(in(GroupFormat::json) == "{\"type\":\"group\",\"by\":{\"who\":\"a\\u001b[2J,\\\"\\n\"},\"count\":3,\"hist\":{\"n\":[{"
                                   "\"least\":\"9223372036854775808\","
                                   "\"most\":\"18446744073709551615\",\"count\":3}]}}\n");
    row.key[0] = static_cast<char>(kUnreadableText);
    CHECK(in(GroupFormat::json).find("\"by\":{\"who\":null}") != std::string::npos);
    CHECK(in(GroupFormat::text).starts_with("who ?: 3 events\n"));
}

TEST_CASE("trace groups: rows that turn out to be one group are joined") {
    using Kind = Measure::Kind;
    const AggregateOptions options = asked("stack", {{Kind::sum, "n"},
                                                     {Kind::least, "n"},
                                                     {Kind::most, "n"},
                                                     {Kind::least, "wide"},
                                                     {Kind::most, "wide"},
                                                     {Kind::log2, "n"}});
    GroupLayout layout;
    for (const bool is_signed : {true, true, true, false, false, true}) layout.cells.push_back({0, is_signed});
    const auto row = [&](uint64_t count, int64_t sum, int64_t least, int64_t most, uint64_t low, uint64_t high) {
        GroupRow out;
        out.count = count;
        out.cells = {{uint64_t(sum)}, {uint64_t(least)}, {uint64_t(most)}, {low}, {high}, std::vector<uint64_t>(66, count)};
        return out;
    };
    GroupRow into = row(2, -5, -4, -1, 3, uint64_t{1} << 63);
    join_groups(options, layout, into, row(3, 20, -7, 12, 2, 9));
    CHECK(into.count == 5);
    CHECK(into.cells[0][0] == 15);
    CHECK(int64_t(into.cells[1][0]) == -7);
    CHECK(int64_t(into.cells[2][0]) == 12);
    CHECK(into.cells[3][0] == 2);
    CHECK(into.cells[4][0] == uint64_t{1} << 63);
    CHECK(into.cells[5][65] == 5);
    join_groups(options, layout, into, row(0, 0, -100, 100, 0, UINT64_MAX)); // no event: its least and most are nobody's
    CHECK(int64_t(into.cells[1][0]) == -7);
    GroupRow empty = row(0, 0, 0, 0, 0, 0);
    join_groups(options, layout, empty, row(1, 6, 6, 6, 6, 6));
    CHECK(empty.cells[1][0] == 6);
    CHECK(empty.cells[3][0] == 6);
}
