// The function that evaluates, found by how often it is on stacks.
#include "programs/languages/evaluation.h"

#include <random>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::languages;

namespace {

// A file's functions: what begins a program, runs a list, does it, is called by it, and calls it back.
const std::vector<Interpreter::Range> kFunctions = {{0, 100}, {100, 300}, {1000, 9000}, {9000, 9100}, {9200, 9300}};
enum : uint64_t { main_one = 50, exec = 150, core = 5000, leaf = 9050, yield = 9250, outside = 9150 };

/// Of `groups`, leaf first; with what the leaf calls, or in the middle of a call.
std::vector<uint64_t> stack(size_t groups, bool calls, bool entered = false) {
    std::vector<uint64_t> out;
    if (calls) out.push_back(leaf);
    if (entered) out.insert(out.end(), {exec, yield});
    for (size_t i = 0; i < groups; ++i) {
        if (i > 0) out.insert(out.end(), {outside, yield});
        out.insert(out.end(), {core, exec});
    }
    out.push_back(main_one);
    return out;
}

} // namespace

TEST_CASE("evaluation: the large function that is there once for each group") {
    EvaluationSearch search;
    CHECK(!search.found());
    std::mt19937 random(1);
    for (int i = 0; i < 200; ++i) {
        const size_t groups = 1 + random() % 5;
        search.add(kFunctions, stack(groups, random() % 2 == 0, random() % 10 == 0), groups);
        if (i < 10) CHECK(!search.found());
    }
    REQUIRE(search.found());
    CHECK(search.found()->start == 1000);
    CHECK(search.found()->end == 9000);
}

TEST_CASE("evaluation: where all have one group, what a program always calls isn't taken for it") {
    EvaluationSearch search;
    for (int i = 0; i < 50; ++i) search.add(kFunctions, stack(1, true), 1);
    REQUIRE(search.found());
    CHECK(search.found()->start == 1000);
}

TEST_CASE("evaluation: none is found where none fits, and stacks without a list say nothing") {
    EvaluationSearch search;
    for (int i = 0; i < 50; ++i) search.add(kFunctions, stack(2, true), 7);
    CHECK(!search.found());
    CHECK(search.stacks() == 50);
    EvaluationSearch other;
    for (int i = 0; i < 50; ++i) other.add(kFunctions, stack(2, true), 0);
    CHECK(other.stacks() == 0);
    EvaluationSearch none;
    for (int i = 0; i < 50; ++i) none.add({}, stack(2, true), 2);
    CHECK(!none.found());
}
