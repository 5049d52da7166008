// Sets of labels by number; and what tells samples apart.
#include "programs/processes/label_sets.h"

#include "programs/processes/stacks.h"
#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;

TEST_CASE("label sets: equal ones have one number, and none has zero") {
    LabelSets sets;
    CHECK(sets.intern({}) == LabelSets::kEmpty);
    CHECK(!sets[LabelSets::kEmpty]);
    const uint32_t a = sets.intern({{"route", "/a"}}), b = sets.intern({{"route", "/b"}});
    CHECK(a != b);
    CHECK(sets.intern({{"route", "/a"}}) == a);
    CHECK(sets.intern({{"rout", "e/a"}}) != a);
    CHECK(*sets[b] == Labels{{"route", "/b"}});
    for (int i = 0; i < 1000; ++i) CHECK(sets.intern({{"id", std::to_string(i)}}) == b + 2 + static_cast<uint32_t>(i));
    CHECK(sets.size() == 1004);
    sets.clear();
    CHECK(sets.size() == 1);
    CHECK(sets.intern({{"route", "/b"}}) == 1);
}

TEST_CASE("label sets: samples that differ only in labels are counted apart") {
    CountTable counts;
    InternedSample sample;
    sample.user = 3;
    for (const uint32_t labels : {0u, 1u, 2u, 1u}) {
        sample.labels = labels;
        counts.add(sample);
    }
    REQUIRE(counts.entries().size() == 3);
    CHECK(counts.entries()[1].count == 2);
}
