// Times of a machine are no bell curve: most lie close together, and some far above them, when something else had the CPU. So
// the median stands for a series, and the median distance from it (MAD) says how far it scatters.
//
// The interval is a bootstrap: of n values, n are drawn at random, each possibly several times, and their median noted; two
// thousand such medians, sorted, have the interval's ends at 2.5 and 97.5 %. For a difference, both series are drawn. Because n
// values know less of how far they scatter than there is (their variance is too small by (n-1)/n, and Student's t isn't the
// normal distribution), the ends lie further out for a small n (Hesterberg, What teachers should know about the bootstrap, 2014:
// the expanded percentile interval):
//
//      share below the lower end = Phi(-sqrt(n / (n - 1)) t(0.975, n - 1)):       n = 5: 0.1 %, n = 10: 0.9 %, n = 30: 1.9 %
//
// Who looks at twenty differences sees one beyond 95 % by chance. For m of them the 97.5 % above are 1 - 0.025 / m (Bonferroni),
// and there are m times as many draws, up to a bound, so that the ends are still between them.
//
// Draws come from a generator with a fixed seed, so that a report says the same thing each time.
#include "programs/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rawbpf::inline v0::measure {
namespace {

constexpr size_t kDraws = 2000;
constexpr size_t kMostDraws = 16 * kDraws;
constexpr double kZ = 1.959963985; // 97.5 % of the normal distribution lie below it

class Generator { // splitmix64, Steele and others 2014
  public:
    size_t below(size_t n) {
        uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        z ^= z >> 31;
        return static_cast<size_t>((z >> 32) * n >> 32); // n is small beside 2^32
    }

  private:
    uint64_t state_ = 20261124;
};

std::vector<double> sorted(std::span<const double> values) {
    std::vector<double> out(values.begin(), values.end());
    std::sort(out.begin(), out.end());
    return out;
}

double middle(const std::vector<double> &sorted) {
    const size_t n = sorted.size();
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/// Medians of draws from a sorted series: how often each value was drawn is enough to find the middle one.
class Drawn {
  public:
    explicit Drawn(const std::vector<double> &sorted) : sorted_(sorted), times_(sorted.size()) {}

    double operator()(Generator &random) {
        const size_t n = sorted_.size();
        std::fill(times_.begin(), times_.end(), 0);
        for (size_t i = 0; i < n; ++i) ++times_[random.below(n)];
        const size_t rank = (n - 1) / 2;
        size_t at = 0, passed = times_[0];
        while (passed <= rank) passed += times_[++at];
        if (n % 2 || passed > rank + 1) return sorted_[at];
        size_t next = at + 1;
        while (times_[next] == 0) ++next;
        return (sorted_[at] + sorted_[next]) / 2;
    }

  private:
    const std::vector<double> &sorted_;
    std::vector<uint32_t> times_;
};

// e to the y, for y >= 0: the series of a 64th of it, squared six times. Without the C library's libm, whose pages would be a
// seventh of the memory of every command that starts.
double exponential(double y) {
    const double part = y / 64;
    double term = 1, sum = 1;
    for (int i = 1; i < 20; ++i) sum += term *= part / i;
    for (int i = 0; i < 6; ++i) sum *= sum;
    return sum;
}

/// The share of the normal distribution above x >= 0: half of it less x + x^3/3 + x^5/(3*5) + ... times the density at x
/// (Marsaglia, Evaluating the normal distribution, 2004). To 1e-13; from 8 on it is less than that.
double above(double x) {
    if (x > 8) return 0;
    double term = x, sum = x;
    for (int i = 3; sum + term != sum; i += 2) sum += term *= x * x / i;
    constexpr double kDensity = 0.3989422804014327; // 1 / sqrt(2 pi)
    return std::max(0.0, 0.5 - sum * kDensity / exponential(x * x / 2));
}

/// Where that share of the normal distribution lies above, for shares from 1e-12 to 0.025.
double normal_beyond(double share) {
    if (share >= 0.025) return kZ;
    double low = kZ, high = 8;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (above(middle) > share ? low : high) = middle;
    }
    return low;
}

/// The share of draws below the interval, and above it.
double tail(size_t n, size_t comparisons) {
    const double v = static_cast<double>(n) - 1, z = normal_beyond(0.025 / static_cast<double>(comparisons));
    const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    const double t = z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
                     (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v); // Cornish and Fisher's series
    return above(std::sqrt(static_cast<double>(n) / v) * t);
}

Interval between(std::vector<double> drawn, double value, size_t n, size_t comparisons = 1) {
    std::sort(drawn.begin(), drawn.end());
    const auto low = static_cast<size_t>(tail(n, comparisons) * static_cast<double>(drawn.size()));
    return {drawn[low], value, drawn[drawn.size() - 1 - low], true};
}

Interval interval_of(const std::vector<double> &sorted) {
    if (sorted.size() < kLeastForInterval) return {sorted.front(), middle(sorted), sorted.back(), false};
    Generator random;
    Drawn draw(sorted);
    std::vector<double> drawn(kDraws);
    for (double &one : drawn) one = draw(random);
    return between(std::move(drawn), middle(sorted), sorted.size());
}

} // namespace

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return middle(values);
}

Summary summary(std::span<const double> values) {
    const std::vector<double> order = sorted(values);
    Summary out;
    out.count = order.size();
    out.least = order.front();
    out.most = order.back();
    std::vector<double> distances;
    distances.reserve(order.size());
    const double center = middle(order);
    for (double value : order) {
        out.mean += value / static_cast<double>(order.size());
        distances.push_back(std::abs(value - center));
    }
    out.deviation = median(std::move(distances));
    out.median = interval_of(order);
    return out;
}

Interval median_interval(std::span<const double> values) { return interval_of(sorted(values)); }

size_t least_for_difference(size_t comparisons) {
    // Of two series of n values all of one lie above all of the other by chance in 2 of (2n over n) cases.
    double cases = 20; // 6 over 3
    size_t n = 3;
    while (2 / cases > 0.05 / static_cast<double>(comparisons)) {
        cases = cases * static_cast<double>(2 * n + 1) * 2 / static_cast<double>(n + 1);
        ++n;
    }
    return n;
}

Interval median_difference(std::span<const double> a, std::span<const double> b, size_t comparisons) {
    const std::vector<double> from = sorted(a), to = sorted(b);
    const double value = middle(to) - middle(from);
    const size_t n = std::min(from.size(), to.size());
    if (n < least_for_difference(comparisons)) return {to.front() - from.back(), value, to.back() - from.front(), false};
    Generator random;
    Drawn draw_from(from), draw_to(to);
    std::vector<double> drawn(std::min(kDraws * comparisons, kMostDraws));
    for (double &one : drawn) {
        const double minus = draw_from(random);
        one = draw_to(random) - minus;
    }
    return between(std::move(drawn), value, n, comparisons);
}

Interval paired_difference(std::span<const double> a, std::span<const double> b) {
    std::vector<double> differences;
    differences.reserve(a.size());
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) differences.push_back(b[i] - a[i]);
    return median_interval(differences);
}

} // namespace rawbpf::inline v0::measure
