// Who runs: the lines of /proc that say so.
#include "runtime/sys/runnable.h"

#include <algorithm>

#include "tests/support/test.h"

using namespace rawbpf;

TEST_CASE("runnable: a line of /proc/PID/stat") {
    const std::string rest = " 1 4711 4711 0 -1 4194304 100 0 0 0 5 3 0 0 20 0 12 0 100 1000000 500 18446744073709551615";
    const auto state = [&](const std::string &name, char letter) {
        return sys::task_state("4711 (" + name + ") " + letter + rest);
    };
    CHECK(state("cc1plus", 'R')->state == 'R');
    CHECK(state("cc1plus", 'R')->threads == 12);
    CHECK(state("cc1plus", 'R')->parent == 1);
    CHECK(state("a) R 1 (b", 'S')->state == 'S'); // a name is whatever its process wants
    CHECK(state(") ) )", 'D')->threads == 12);
    for (const char *bad : {"", "4711", "4711 (x)", "4711 (x) ", "4711 (x) R", "4711 (x) R 1 2 3", "no brackets R 1 2 3"}) {
        CAPTURE(bad);
        CHECK_FALSE(sys::task_state(bad));
    }
    const std::string whole = "4711 (x) R" + rest;
    for (size_t cut = 0; cut < whole.find(" 12 "); ++cut) CHECK_FALSE(sys::task_state(whole.substr(0, cut)));
}

TEST_CASE("runnable: how many threads, by /proc/loadavg") {
    CHECK(sys::runnable_threads("1.20 0.80 0.50 3/456 14397") == 3);
    CHECK(sys::runnable_threads("0.00 0.00 0.00 1/1 1") == 1);
    for (const char *bad :
         {"", "1.20", "1.20 0.80 0.50 ", "1.20 0.80 0.50 3", "1.20 0.80 0.50 x/456 1", "1.20 0.80 0.50 /456 1"}) {
        CAPTURE(bad);
        CHECK_FALSE(sys::runnable_threads(bad));
    }
}

TEST_CASE("runnable: who descends from whom") {
    using List = std::vector<int>;
    const std::vector<std::pair<int, int>> parents{{1, 0}, {9, 8}, {8, 7}, {7, 1}, {6, 7}, {5, 1}, {4, 5}, {3, 9}};
    List below = sys::descendants({7}, parents);
    std::sort(below.begin(), below.end());
    CHECK(below == List{3, 6, 8, 9}); // a child may have a lower number than its parent
    CHECK(sys::descendants({4}, parents).empty());
    CHECK(sys::descendants({4711}, parents).empty());
    below = sys::descendants({7, 8}, parents);
    std::sort(below.begin(), below.end());
    CHECK(below == List{3, 6, 9});                             // not those given
    CHECK(sys::descendants({2}, {{2, 3}, {3, 2}}) == List{3}); // numbers given again while they were read
}
