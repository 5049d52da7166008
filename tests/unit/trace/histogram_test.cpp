// Percentiles against the exact ones.
#include "programs/trace/histogram.h"

#include <algorithm>

#include "tests/support/test.h"

using namespace rawbpf::trace;

TEST_CASE("trace histogram: percentiles to an eighth of their size") {
    Histogram h;
    std::vector<uint64_t> all;
    uint64_t state = 88172645463325252;
    for (int i = 0; i < 20'000; ++i) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const uint64_t ns = (state >> 40) >> (state & 15); // 0 to 16 million, more of the small ones
        all.push_back(ns);
        h.add(ns);
    }
    std::sort(all.begin(), all.end());
    CHECK(h.count() == all.size());
    CHECK(h.least() == all.front());
    CHECK(h.most() == all.back());
    for (double share : {0.01, 0.5, 0.9, 0.99, 0.999}) {
        const auto exact = double(all[static_cast<size_t>(share * double(all.size()))]);
        CHECK(double(h.percentile(share)) >= exact);
        CHECK(double(h.percentile(share)) <= exact * 1.125 + 1);
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 64; ++i) sum += h.power(i);
    CHECK(sum == all.size());
}

TEST_CASE("trace histogram: one value, none, and the largest") {
    Histogram h;
    CHECK(h.percentile(0.5) == 0);
    CHECK(h.least() == 0);
    h.add(1000);
    for (double share : {0.0, 0.5, 1.0}) CHECK(h.percentile(share) == 1000);
    h.add(UINT64_MAX);
    CHECK(h.percentile(1) == UINT64_MAX);
    CHECK(h.power(63) == 1);
    std::string out;
    Histogram small;
    for (uint64_t ns : {900, 1500, 1600, 5000}) small.add(ns);
    append_histogram(out, small);
    CHECK(out == "  least 900 ns, median 1.7 us, 90 % 5.0 us, 99 % 5.0 us, 99.9 % 5.0 us, most 5.0 us\n"
                 "     512 ns .. 1 us               1 |####################                    |\n"
                 "       1 us .. 2 us               2 |########################################|\n"
                 "       2 us .. 4 us               0 |                                        |\n"
                 "       4 us .. 8 us               1 |####################                    |\n");
}
