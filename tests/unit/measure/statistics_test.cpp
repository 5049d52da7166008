// Statistics: exact figures of small series, and how often chance is taken for a difference.
#include "programs/measure/statistics.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/test.h"

using namespace rawbpf;
using namespace rawbpf::measure;

namespace {

/// Times as a machine's: mostly close together, one in ten far above.
class Times {
  public:
    double next() {
        const double share = uniform();
        const double time = 100 - 3 * std::log(1 - uniform());
        return share < 0.1 ? time + 50 : time;
    }
    std::vector<double> series(size_t n) {
        std::vector<double> out(n);
        for (double &one : out) one = next();
        return out;
    }

  private:
    double uniform() { // Knuth's 64-bit linear generator, its upper bits
        state_ = state_ * 6364136223846793005 + 1442695040888963407;
        return static_cast<double>(state_ >> 11) / 9007199254740992.0;
    }
    uint64_t state_ = 7;
};

} // namespace

TEST_CASE("statistics: medians, scatter, means") {
    CHECK(median({3}) == 3);
    CHECK(median({5, 1, 3}) == 3);
    CHECK(median({4, 1, 3, 2}) == 2.5);
    const std::vector<double> values = {9, 1, 2, 3, 100};
    const Summary all = summary(values);
    CHECK(all.count == 5);
    CHECK(all.least == 1);
    CHECK(all.most == 100);
    CHECK(all.mean == 23);
    CHECK(all.median.value == 3);
    CHECK(all.deviation == 2); // 6, 2, 1, 0, 97
}

TEST_CASE("statistics: too few values say so, and are no difference") {
    const std::vector<double> low = {1, 2, 3}, high = {11, 12, 13}, four = {11, 12, 13, 14};
    const Interval few = median_interval(low);
    CHECK(!few.enough);
    CHECK(few.low == 1);
    CHECK(few.high == 3);
    const Interval apart = median_difference(low, high);
    CHECK(!apart.enough);
    CHECK(apart.value == 10);
    CHECK(apart.low == 8);
    CHECK(apart.high == 12);
    CHECK(!apart.beyond_zero());
    CHECK(!median_difference(low, four).beyond_zero());
    const std::vector<double> first = {1, 2, 3, 4};
    CHECK(median_difference(first, four).beyond_zero());
    CHECK(median_difference(four, first).value == -10);
    const std::vector<double> one = {7};
    CHECK(median_interval(one).value == 7);
    CHECK(summary(one).deviation == 0);
}

TEST_CASE("statistics: equal values have an interval of no width") {
    const std::vector<double> same(20, 5.0);
    const Interval interval = median_interval(same);
    CHECK(interval.enough);
    CHECK(interval.low == 5);
    CHECK(interval.high == 5);
    CHECK(!paired_difference(same, same).beyond_zero());
}

TEST_CASE("statistics: of 200 comparisons of like with like, 5 % at most are taken for a difference") {
    Times times;
    int unpaired = 0, paired = 0, held = 0, found = 0;
    const double truth = 100 + 3 * std::log(9.0 / 4); // the median of all: 4 of 9 of those without a disturbance lie above it
    for (int i = 0; i < 200; ++i) {
        const std::vector<double> a = times.series(20), b = times.series(20);
        unpaired += median_difference(a, b).beyond_zero();
        paired += paired_difference(a, b).beyond_zero();
        const Interval interval = median_interval(a);
        held += interval.low <= truth && truth <= interval.high;
        std::vector<double> slower = b;
        for (double &one : slower) one += 10;
        found += median_difference(a, slower).beyond_zero();
    }
    CHECK(unpaired <= 10);
    CHECK(paired <= 14); // 5 % and what 200 tosses scatter
    CHECK(held >= 184);
    CHECK(found >= 190); // while a difference is one
}
