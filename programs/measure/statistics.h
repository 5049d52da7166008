// What repeated measurements say: where their middle is, how far they scatter, and whether two series differ beyond chance.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rawbpf::inline v0::measure {

/// A figure with the interval in which its true value lies in 95 of 100 cases.
struct Interval {
    double low = 0, value = 0, high = 0;
    bool enough = false; ///< there were enough values for that; otherwise the interval is as wide as they are

    /// Of a difference: it is no chance.
    [[nodiscard]] bool beyond_zero() const { return enough && (low > 0 || high < 0); }
};

/// All of five values lie on the same side of what they scatter around in one case of 16, of six in one of 32.
constexpr size_t kLeastForInterval = 6;
/// Three of one series all lie above three of another by chance in one case of ten, four above four in one of 35.
constexpr size_t kLeastForDifference = 4;

struct Summary {
    size_t count = 0;
    double least = 0, most = 0, mean = 0;
    double deviation = 0; ///< the median distance from the median (MAD), not scaled
    Interval median;
};

/// All of these need one value at least, and no value that isn't a number. The same values give the same interval. PURE.
[[nodiscard]] double median(std::vector<double> values);
[[nodiscard]] Summary summary(std::span<const double> values);
/// By bootstrap.
[[nodiscard]] Interval median_interval(std::span<const double> values);
/// The median of `b` minus that of `a`, where their measurements have nothing to do with each other. `comparisons`: how many
/// differences are looked at together; with more of them each interval is wider, so that in 95 of 100 cases none of them all
/// lies beyond zero by chance (Bonferroni).
[[nodiscard]] Interval median_difference(std::span<const double> a, std::span<const double> b, size_t comparisons = 1);
/// How many values each of two series needs for that many comparisons: kLeastForDifference for one.
[[nodiscard]] size_t least_for_difference(size_t comparisons);
/// The median of b[i] - a[i], where each pair was measured at the same time; as many of both.
[[nodiscard]] Interval paired_difference(std::span<const double> a, std::span<const double> b);

} // namespace rawbpf::inline v0::measure
