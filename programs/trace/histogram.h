// Times of one function's calls. PURE.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rawbpf::inline v0::trace {

/// Exact sums, and for percentiles buckets of an eighth of a power of two.
class Histogram {
  public:
    void add(uint64_t ns);
    [[nodiscard]] uint64_t count() const { return count_; }
    [[nodiscard]] uint64_t sum() const { return sum_; }
    [[nodiscard]] uint64_t least() const { return count_ ? least_ : 0; }
    [[nodiscard]] uint64_t most() const { return most_; }
    /// The time that `share` (0 to 1) of the calls stayed within, to an eighth of its size.
    [[nodiscard]] uint64_t percentile(double share) const;
    /// Calls of [2^i, 2^(i+1)) ns.
    [[nodiscard]] uint64_t power(uint32_t i) const;

  private:
    static constexpr uint32_t kParts = 8;
    static uint32_t bucket(uint64_t ns);
    static uint64_t upper(uint32_t bucket);
    std::vector<uint64_t> buckets_;
    uint64_t count_ = 0, sum_ = 0, least_ = UINT64_MAX, most_ = 0;
};

/// "312 ns", "1.6 us", "4.0 ms", "2.50 s".
void append_duration(std::string &out, uint64_t ns);
[[nodiscard]] std::string duration(uint64_t ns);
/// A line with the percentiles and a bar for each power of two, indented.
void append_histogram(std::string &out, const Histogram &histogram);

} // namespace rawbpf::inline v0::trace
