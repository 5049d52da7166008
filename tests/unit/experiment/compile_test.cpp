// Probes as programs: each is run in the emulator on a record, and what its maps hold then is what the text says.
#include "programs/experiment/compile.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "programs/experiment/figures.h"
#include "programs/experiment/parse.h"
#include "programs/experiment/plan.h"
#include "programs/experiment/show.h"
#include "runtime/base/fail.h"
#include "runtime/emulator/machine.h"
#include "runtime/object/unit_object.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::experiment;

namespace {

// A tracepoint's record: id (u64 at 8), delta (s32 at 16), name (char[8] at 20).
struct Fields {
    uint64_t common = 0, id = 0;
    int32_t delta = 0;
    char name[8] = {};
    uint32_t end = 0;
};

trace::ProbeSite site() {
    trace::ProbeSite out;
    out.kind = trace::ProbeKind::tracepoint;
    out.category = "test";
    out.function = "record";
    out.signature.known = true;
    out.signature.parameters = {
        {"id", {"unsigned long", trace::Show::integer, 8, false, 0, 0, trace::Show::nothing}, false},
        {"delta", {"int", trace::Show::integer, 4, true, 0, 0, trace::Show::nothing}, false},
        {"name", {"char[8]", trace::Show::characters, 8, false, 0, 8, trace::Show::nothing}, false},
    };
    out.offsets = {8, 16, 20};
    return out;
}
Surroundings surroundings() {
    Surroundings out;
    out.match = [](const trace::ProbeSpec &) -> Result<trace::Matched> {
        trace::Matched matched;
        matched.places.push_back(site());
        return matched;
    };
    return out;
}

// "map,k,value CRLF m,1,4 CRLF m,2,2 CRLF" -> "1,4 2,2"
std::string without_heading(std::string_view csv) {
    std::string out;
    for (csv.remove_prefix(std::min(csv.find('\n') + 1, csv.size())); !csv.empty();) {
        const size_t comma = csv.find(','), end = csv.find("\r\n");
        if (!out.empty()) out += ' ';
        out += csv.substr(comma + 1, end - comma - 1);
        csv.remove_prefix(end + 2);
    }
    return out;
}

// A text's only probe, and what it leaves behind.
class Lab {
  public:
    explicit Lab(const std::string &text) {
        Parsed parsed = parse(text, "x.exp");
        REQUIRE(parsed.mistakes.report() == "");
        Compiled compiled = compile(parsed.experiment, {}, surroundings(), parsed.mistakes);
        REQUIRE(parsed.mistakes.report() == "");
        views_ = compiled.maps;
        Result<ObjectSpec> spec = object_of(compiled.unit);
        REQUIRE(static_cast<bool>(spec));
        spec_ = std::move(*spec);
        REQUIRE(spec_.programs.size() == 1);
        Result<std::unique_ptr<emulator::Machine>> machine = emulator::Machine::create(spec_);
        REQUIRE(static_cast<bool>(machine));
        machine_ = std::move(*machine);
        REQUIRE(static_cast<bool>(machine_->set_memory({reinterpret_cast<std::byte *>(&fields_), sizeof(fields_)})));
    }
    Lab &run(uint64_t id, int32_t delta = 0, std::string_view name = "") {
        fields_ = {};
        fields_.id = id;
        fields_.delta = delta;
        std::memcpy(fields_.name, name.data(), name.size());
        REQUIRE(static_cast<bool>(machine_->enter(0)));
        const Result<uint64_t> r0 = machine_->run();
        CHECK((r0 ? std::string() : r0.error().message()) == "");
        return *this;
    }
    std::string table(std::string_view name) {
        for (const MapView &view : views_)
            if (view.map == name)
                for (const auto &map : machine_->maps())
                    if (map->name() == name) {
                        std::string keys, values, out;
                        for (uint32_t i = map->next_entry(0); i < map->max_entries(); i = map->next_entry(i + 1)) {
                            uint32_t index = 0;
                            keys.append(reinterpret_cast<const char *>(map->key_at(i, index)), map->key_size());
                            values.append(reinterpret_cast<const char *>(map->value_at(i)), map->value_size());
                        }
                        const MapShape shape{map->key_size(), map->value_size(), 1};
                        append_csv_rows(out, figures_of(view, shape, bytes_of(keys), bytes_of(values), false), {});
                        return without_heading(out);
                    }
        return "no map";
    }

  private:
    Fields fields_;
    std::vector<MapView> views_;
    ObjectSpec spec_;
    std::unique_ptr<emulator::Machine> machine_;
};

std::string mistakes(const std::string &text) {
    Parsed parsed = parse(text, "x.exp");
    if (!parsed.mistakes.any()) (void)compile(parsed.experiment, {}, surroundings(), parsed.mistakes);
    return parsed.mistakes.any() ? parsed.mistakes.all()[0].at.message + " | " + parsed.mistakes.all()[0].hint : std::string();
}
std::string on(const std::string &body) { return "on tracepoint:test:record { " + body + " }\n"; }

} // namespace

TEST_CASE("experiment compile: numbers by number") {
    Lab lab(on("@n[id] += 2; @last = id; @gone[id] = 1; if id == 2 { delete @gone[1] }"));
    lab.run(1).run(2).run(1);
    CHECK(lab.table("n") == "1,4 2,2");
    CHECK(lab.table("last") == "1");
    CHECK(lab.table("gone").find("2,1") != std::string::npos);
}

TEST_CASE("experiment compile: what a workload starts is followed where a probe asks for it, and said where it can't be") {
    const std::string text =
        on("if workload { @mine = count() } else { @others[workload, id] = count() }") + on("@all = count()");
    Parsed parsed = parse(text, "x.exp");
    Surroundings here = surroundings();
    int asked = 0;
    here.forks = [&]() -> Result<Forks> { return ++asked, Forks{44, {}}; };
    const Compiled compiled = compile(parsed.experiment, {}, here, parsed.mistakes);
    REQUIRE(parsed.mistakes.report() == "");
    CHECK(asked == 1);
    std::string names;
    for (const Function &function : compiled.unit.functions) names += function.name + ' ';
    CHECK(names == "record record_2 experiment_exec experiment_fork experiment_exit ");
    for (const MapView &view : compiled.maps) CHECK(!is_own_map(view.map));
    for (const std::string_view own : {kRootsMap, kThreadsMap})
        CHECK(std::any_of(compiled.unit.maps.begin(), compiled.unit.maps.end(),
                          [&](const MapDef &map) { return map.name == own; }));

    Parsed without = parse(on("@all = count()"), "x.exp");
    CHECK(compile(without.experiment, {}, here, without.mistakes).unit.functions.size() == 1);
    CHECK(asked == 1);
    Parsed refused = parse(text, "x.exp");
    here.forks = []() -> Result<Forks> { return fail(Errc::permission, "there is no tracefs"); };
    (void)compile(refused.experiment, {}, here, refused.mistakes);
    REQUIRE(refused.mistakes.any());
    CHECK(refused.mistakes.all()[0].at.message == "there is no tracefs");
    CHECK(refused.mistakes.all()[0].at.column == 32);
}

TEST_CASE("experiment compile: aggregates") {
    Lab lab(
        on("@c[id] = count(); @s[id] = sum(delta); @t[id] = stats(delta); @h[id] = hist(id * 3); @l = lhist(delta, 0, 30, 10)"));
    lab.run(1, 5).run(1, -7).run(1, 25).run(2, 100);
    CHECK(lab.table("c") == "1,3 2,1");
    CHECK(lab.table("s") == "2,100 1,23");
    CHECK(lab.table("t").find("1,3,") != std::string::npos);
    CHECK(lab.table("t").find("-7") != std::string::npos);
    // 3 is in the bucket from 2 to 3, 6 in that from 4 to 7
    CHECK(lab.table("h").find("1,2,3,3") != std::string::npos);
    CHECK(lab.table("h").find("2,4,7,1") != std::string::npos);
    CHECK(lab.table("l").find("20,29,1") != std::string::npos);
}

TEST_CASE("experiment compile: values are C's") {
    Lab lab(on(
        "let x = id; let y = delta; "
        "@v[1] = x + 2 * 3; @v[2] = (x << 4) | 1; @v[3] = y / 2 + 100; @v[4] = y % 4 + 100; @v[5] = !x; @v[6] = x > 3 && y < 0; "
        "@v[7] = x / 0x3; @v[8] = ~x & 0xff; @v[9] = y > 1 || x == 9; @v[10] = x - 1 > 0xffffffffff; @v[11] = x ^ x + 1"));
    lab.run(9, -7);
    const std::string all = " " + lab.table("v") + " ";
    for (const char *row :
         {" 1,15 ", " 2,145 ", " 3,97 ", " 4,97 ", " 5,0 ", " 6,1 ", " 7,3 ", " 8,246 ", " 9,1 ", " 10,0 ", " 11,3 "}) {
        CAPTURE(row);
        CAPTURE(all);
        CHECK(all.find(row) != std::string::npos);
    }
}

TEST_CASE("experiment compile: texts are keys and are compared") {
    Lab lab(on("if name == \"cat\" { @cats = count() } @by[name, id] = count(); if name != \"cat\" { @others = count() }"));
    lab.run(1, 0, "cat").run(1, 0, "cats").run(2, 0, "cat");
    CHECK(lab.table("cats") == "2");
    CHECK(lab.table("others") == "1");
    CHECK(lab.table("by") == "cat,1,1 cats,1,1 cat,2,1");
}

TEST_CASE("experiment compile: what is read before it is written is 0") {
    Lab lab(on("if @start[id] != 0 { @took[id] = delta - @start[id]; delete @start[id]; return } @start[id] = delta"));
    lab.run(1, 10).run(2, 11).run(1, 25);
    CHECK(lab.table("took") == "1,15");
    CHECK(lab.table("start") == "2,11");
}

TEST_CASE("experiment compile: mistakes of meaning") {
    CHECK(mistakes(on("@a[deltaa] = 1")).find("did you mean delta?") != std::string::npos);
    CHECK(mistakes(on("@a = name; @a = 1")) == "@a holds a text, this is a number | ");
    CHECK(mistakes(on("@a[id] = 1; @a = 2")) == "@a has no key here, and one in line 1 | ");
    CHECK(mistakes(on("@a[id] = 1; @a[name] = 2")).starts_with("the key of @a has other parts here than in line 1"));
    CHECK(mistakes(on("@a = count(); @a = sum(id)")) == "@a was something else in line 1 | ");
    CHECK(mistakes(on("@a = count(); @b = @a")).find("a program can't") != std::string::npos);
    CHECK(mistakes(on("@reads = @raeds")) == "@raeds is read here, and nothing writes to it | did you mean `reads`?");
    CHECK(mistakes(on("@a = count(1)")).find("count") != std::string::npos);
    CHECK(mistakes(on("@a = coutn()")) == "there is no function coutn | did you mean `count`?");
    CHECK(mistakes(on("@a = name + 1")).starts_with("a text isn't a number"));
    CHECK(mistakes(on("@a = id / 0")) == "a division by 0 | ");
    CHECK(mistakes(on("@a = id << 64")) == "a number is shifted by 0 to 63 | ");
    CHECK(mistakes(on("x = 1")) == "there is no variable x | let x = ... makes one");
    CHECK(mistakes(on("let x = name")).starts_with("a variable is a number"));
    CHECK(mistakes(on("if name == \"much too long\" { @a = 1 }")).find("at most") != std::string::npos);
    CHECK(mistakes(on("@a = ret")).find("returned") != std::string::npos);
    CHECK(mistakes(on("@a = lhist(id, 5, 1, 1)")).find("a larger one") != std::string::npos);
    CHECK(mistakes(on("emit e id; emit e delta")).starts_with("the event e has other fields here"));
    CHECK(mistakes("on profile:0 { @a = 1 }") == "a clock is named with its frequency: profile:99 | 1 to 100000 Hz");
    CHECK(mistakes("on kprob:f { @a = 1 }").find("kprobe") != std::string::npos);
}

TEST_CASE("experiment plan: names of steps and formats are looked up before anything is loaded") {
    const auto said = [](const std::string &text) {
        Parsed parsed = parse(text, "x.exp");
        REQUIRE(parsed.mistakes.report() == "");
        const Result<Plan> plan = make_plan(parsed.experiment, "", surroundings(), parsed.mistakes);
        REQUIRE(static_cast<bool>(plan));
        return parsed.mistakes.any() ? parsed.mistakes.all()[0].at.message + " | " + parsed.mistakes.all()[0].hint
                                     : std::string();
    };
    const std::string probe = on("@reads[id] = count(); emit open id, name");
    CHECK(said(probe + "events\nprint reads\nexpect reads[1] > 0 && events.open > 0\nformat open \"{id}\"\n") == "");
    CHECK(said(probe + "print raeds\n") == "there is no map raeds | did you mean `reads`?");
    CHECK(said(probe + "format opne \"x\"\n") == "no probe emits an event opne | did you mean `open`?");
    CHECK(said(probe + "format open \"{idd}\"\n") == "the event open has no field idd | did you mean `id`?");
    CHECK(said(probe + "expect raeds[1] > 0\n").ends_with("did you mean `reads`?"));
    CHECK(said(probe + "attach open kprobe:f\n").starts_with("there is no program open | there are "));
    CHECK(said(probe + "measure reads = 1\n") == "reads is a map already: a measure has a name of its own | ");
    CHECK(said(probe + "set limit = 1\n").starts_with("there is no variable limit"));
    CHECK(said(on("@a = 1") + "events\n").starts_with("nothing emits events here"));
    CHECK(said(on("@a = 1") + "object /none.o\n").find("/none.o") != std::string::npos);
    CHECK(said("asm {\n.program p \"xdp\"\nr0 = r11\nexit\n}\n").find("r11") != std::string::npos);
    CHECK(said("asm {\n.program p \"xdp\"\nr0 = 1\nexit\n}\nasm {\n.program q \"xdp\"\nr0 = 1\nexit\n}\npacket 00\n") ==
          "there are 2 programs: which of them gets the packet? | packet FILE to PROGRAM");
}
