// Recordings: what is written is read again, and nothing else is.
#include "programs/experiment/tape.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::experiment;

namespace {

Tape sample() {
    Tape out;
    out.name = "x.exp", out.text = "wait 1s\n", out.kernel = "6.12.9", out.when = "2026-11-25T12:00:00Z";
    out.settings = {{"n", "5"}};
    ObjectSpec &spec = out.plan.specs.emplace_back();
    spec.name = "x.exp", spec.btf = {std::byte{1}, std::byte{2}};
    MapSpec &map = spec.maps.emplace_back();
    map.name = "reads", map.type = 1, map.key_size = 4, map.value_size = 12, map.max_entries = 10;
    spec.programs.emplace_back().name = "p";
    Plan::MapPlace &place = out.plan.maps.emplace_back();
    place.view.map = "reads", place.view.figures = Figures::linear, place.view.from = -5, place.view.step = 2,
    place.view.buckets = 3;
    place.view.key = {{"pid", Show::ip, 0, 4, 0}};
    out.plan.events.push_back({{"open", "events", 1, true, 24, {{"file", Show::text, 16, 8, 0}}}, 0});
    out.plan.notes = {"a note"}, out.plan.variables = {"limit"}, out.attached = {"kprobe f"};
    out.moments.push_back({Moment::Kind::step, "wait 1s"});
    out.moments.push_back({Moment::Kind::number, "n", static_cast<experiment::Number>(UINT64_MAX)});
    out.moments.push_back({Moment::Kind::number, "m", -2.5L});
    // Two elements, each with the values of two CPUs, which are rounded up to 8 bytes.
    out.moments.push_back({Moment::Kind::reading, "reads", 0, 0, std::string(8, 'k'), std::string(64, 'v'), 2, 2});
    out.moments.push_back({Moment::Kind::record, "events", 0, 0, "", "bytes"});
    out.moments.push_back({Moment::Kind::symbol, "vfs_read", 0, 0, "", "", 0xffffffff81000000});
    return out;
}
Result<Tape> read(const std::string &bytes) { return read_tape(bytes_of(bytes), "x.rec"); }
std::string refusal(const std::string &bytes) {
    const Result<Tape> tape = read(bytes);
    return tape ? "taken" : tape.error().message();
}

} // namespace

TEST_CASE("experiment tape: what is written is read again") {
    const Result<Tape> tape = read(write_tape(sample()));
    REQUIRE(tape);
    CHECK(tape->name == "x.exp");
    CHECK(tape->settings == std::vector<Setting>{{"n", "5"}});
    CHECK(tape->plan.specs[0].btf.size() == 2);
    CHECK(tape->plan.specs[0].maps[0].value_size == 12);
    CHECK(tape->plan.specs[0].programs[0].name == "p");
    CHECK(tape->plan.maps[0].view.from == -5);
    CHECK(tape->plan.maps[0].view.key[0].show == Show::ip);
    CHECK(tape->plan.events[0].view.fields[0].name == "file");
    CHECK(tape->plan.events[0].view.numbered);
    CHECK(tape->attached == std::vector<std::string>{"kprobe f"});
    REQUIRE(tape->moments.size() == 6);
    CHECK(tape->moments[1].number == static_cast<experiment::Number>(UINT64_MAX));
    CHECK(tape->moments[2].number == -2.5L);
    CHECK(tape->moments[3].values.size() == 64);
    CHECK(tape->moments[5].count == 0xffffffff81000000);
    CHECK(write_tape(*tape) == write_tape(sample()));
}

TEST_CASE("experiment tape: cut or lengthened it is refused") {
    const std::string whole = write_tape(sample());
    for (size_t end = 0; end < whole.size(); ++end) CHECK(!read(whole.substr(0, end)));
    CHECK(refusal(whole + "x").find("expected its end") != std::string::npos);
    CHECK(refusal("RBPFEXP\2").find("another version") != std::string::npos);
    CHECK(refusal("# an experiment\n").find("is no recording") != std::string::npos);
    // Any byte that is another one is refused or read, and breaks nothing.
    for (size_t at = 8; at < whole.size(); ++at)
        for (const char other : {'\0', '\xff', '\x7f'}) {
            std::string damaged = whole;
            damaged[at] = other;
            (void)read(damaged);
        }
}

TEST_CASE("experiment tape: what doesn't fit together is refused") {
    Tape tape = sample();
    tape.moments[3].values.pop_back();
    CHECK(refusal(write_tape(tape)).find("another size") != std::string::npos);
    tape = sample();
    tape.moments[3].count = UINT64_MAX;
    CHECK(refusal(write_tape(tape)).find("another size") != std::string::npos);
    tape = sample();
    tape.moments[3].name = "writes";
    CHECK(refusal(write_tape(tape)).find("a map that isn't there") != std::string::npos);
    tape = sample();
    tape.plan.maps[0].spec = 1;
    CHECK(refusal(write_tape(tape)).find("an object that isn't there") != std::string::npos);
    tape = sample();
    tape.plan.maps[0].view.step = 0;
    CHECK(refusal(write_tape(tape)).find("without steps") != std::string::npos);
    tape = sample();
    tape.plan.maps[0].view.figures = static_cast<Figures>(9);
    CHECK(refusal(write_tape(tape)).find("no value of its kind") != std::string::npos);
}
