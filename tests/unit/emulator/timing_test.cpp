// What is said of repeated runs: the empty program's cost is in no figure that says "own" or "each".
#include "programs/exec/timing.h"

#include "runtime/base/format.h"
#include "tests/support/test.h"

using namespace rawbpf;
using exec::RunResult;

namespace {

std::string json_of(const exec::Timing &timing) {
    std::string out;
    {
        render::JsonObject object(out);
        append_timing_json(object, timing);
    }
    return out;
}

} // namespace

TEST_CASE("exec timing: least, median and most, without what an empty program takes") {
    RunResult result;
    result.ns = 31;
    result.batches = {30, 20, 50, 24};
    result.empty = {9, 10, 40};
    result.instructions = 12;
    const exec::Timing timing = timing_of(result);
    CHECK(timing_text(timing) ==
          "27.0 ns a run, 12 instructions (median of 4 parts, 20.0 to 50.0, mean 31.0; an empty program 10.0, so "
          "17.0 of its own, 10.0 to 40.0: 1.70 ns each instruction more, 1.00 to 4.00)");
    if (render::writes_json())
        CHECK(
            json_of(timing) ==
            R"({"parts":4,"ns":{"least":20.000,"median":27.000,"most":50.000},"mean_ns":31.000,)"
            R"("empty_ns":{"least":9.000,"median":10.000,"most":40.000},"own_ns":{"least":10.000,"median":17.000,"most":40.000},)"
            R"("instructions":12,"ns_per_instruction":{"least":1.000,"median":1.700,"most":4.000}})");
}

TEST_CASE("exec timing: what isn't known isn't said") {
    RunResult result;
    result.ns = 12.25;
    CHECK(timing_text(timing_of(result)) == "12.2 ns a run"); // in the kernel, once
    result.instructions = 1;
    CHECK(timing_text(timing_of(result)) == "12.2 ns a run, 1 instruction");
    result.batches = {12, 13};
    CHECK(timing_text(timing_of(result)) == "12.5 ns a run, 1 instruction (median of 2 parts, 12.0 to 13.0, mean 12.2)");
    result.empty = {20, 20}; // noise: a program isn't faster than none
    result.instructions = 2;
    CHECK(timing_text(timing_of(result)).ends_with("mean 12.2; an empty program 20.0, so 0.0 of its own, 0.0 to 0.0)"));
    if (render::writes_json()) {
        const std::string json = json_of(timing_of(RunResult{}));
        for (const char *name : {"empty_ns", "own_ns", "instructions", "ns_per_instruction"})
            CHECK(json.find(format(R"("{}":null)", name)) != std::string::npos);
    }
}
