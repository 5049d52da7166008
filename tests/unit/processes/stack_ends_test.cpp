// Why stacks ended, in words.
#include "programs/processes/stack_ends.h"

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::processes;

TEST_CASE("endings are counted under the ledger's words") {
    StackEnds ends;
    CHECK(ends.list().empty());
    ends.add(0xff); // walked by who knows no endings
    CHECK(ends.list().empty());
    ends.add(UNWIND_ENDED_ROOT);
    ends.add(UNWIND_ENDED_ROOT);
    ends.add(UNWIND_ENDED_DEPTH);
    const auto list = ends.list();
    REQUIRE(list.size() == UNWIND_ENDINGS);
    uint64_t sum = 0;
    for (const auto &[name, count] : list) {
        sum += count;
        CHECK(count == (name == "root" ? 2 : name == "depth" ? 1 : 0));
    }
    CHECK(sum == 3);
    CHECK(ending_name(UNWIND_ENDED_NO_TABLE) == "no_table");
    CHECK(ending_name(200) == "unknown");
    CHECK(by_tables(UNWIND_ENDED_STUCK));
    CHECK_FALSE(by_tables(UNWIND_ENDED_NO_PROCESS));
    CHECK_FALSE(by_tables(UNWIND_ENDED_NO_REGS));
    CHECK_FALSE(by_tables(0xff));
}
