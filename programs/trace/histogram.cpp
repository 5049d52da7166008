// Durations spread over many powers of ten, and a mean says little of them. Buckets that grow with the value, an eighth of a
// power of two each, keep every percentile to within 13 % in a few hundred numbers, however many calls there are.
#include "programs/trace/histogram.h"

#include <algorithm>
#include <bit>

#include "programs/render/text.h"
#include "runtime/base/format.h"

namespace rawbpf::inline v0::trace {
namespace {

constexpr size_t kBar = 40;

// Powers of two in the units that they nearly are: 1 us for 1024 ns, so that neighbours look like what they are.
std::string power_text(uint32_t power) {
    constexpr std::string_view kUnits[] = {"ns", "us", "ms", "s"};
    const uint32_t unit = std::min<uint32_t>(power / 10, 3);
    return format("{} {}", uint64_t{1} << (power - unit * 10), kUnits[unit]);
}

} // namespace

uint32_t Histogram::bucket(uint64_t ns) {
    if (ns < kParts) return static_cast<uint32_t>(ns);
    const auto power = static_cast<uint32_t>(std::bit_width(ns) - 1);
    return (power - 2) * kParts + static_cast<uint32_t>(ns >> (power - 3) & (kParts - 1));
}
uint64_t Histogram::upper(uint32_t bucket) {
    if (bucket < kParts) return bucket;
    const uint32_t power = bucket / kParts + 2;
    return ((uint64_t{kParts} + bucket % kParts + 1) << (power - 3)) - 1;
}
void Histogram::add(uint64_t ns) {
    const uint32_t at = bucket(ns);
    if (at >= buckets_.size()) buckets_.resize(at + 1);
    ++buckets_[at];
    ++count_;
    sum_ += ns;
    least_ = std::min(least_, ns);
    most_ = std::max(most_, ns);
}
uint64_t Histogram::percentile(double share) const {
    const auto wanted = static_cast<uint64_t>(double(count_) * share);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < buckets_.size(); ++i) {
        seen += buckets_[i];
        if (seen > wanted || seen == count_) return std::clamp(upper(i), least_, most_);
    }
    return most_;
}
uint64_t Histogram::power(uint32_t i) const {
    uint64_t sum = 0;
    for (uint32_t b = 0; b < buckets_.size(); ++b) {
        const uint64_t low = b == 0 ? 0 : upper(b - 1) + 1;
        const uint32_t of = low == 0 ? 0 : static_cast<uint32_t>(std::bit_width(low) - 1);
        if (of == i) sum += buckets_[b];
    }
    return sum;
}

void append_duration(std::string &out, uint64_t ns) {
    if (ns < 1000)
        append(out, "{} ns", ns);
    else if (ns < 1'000'000)
        append(out, "{:.1f} us", double(ns) / 1e3);
    else if (ns < 1'000'000'000)
        append(out, "{:.1f} ms", double(ns) / 1e6);
    else
        append(out, "{:.2f} s", double(ns) / 1e9);
}
std::string duration(uint64_t ns) {
    std::string out;
    append_duration(out, ns);
    return out;
}

void append_histogram(std::string &out, const Histogram &histogram) {
    append(out, "  least {}, median {}, 90 % {}, 99 % {}, 99.9 % {}, most {}\n", duration(histogram.least()),
           duration(histogram.percentile(0.5)), duration(histogram.percentile(0.9)), duration(histogram.percentile(0.99)),
           duration(histogram.percentile(0.999)), duration(histogram.most()));
    const auto first = static_cast<uint32_t>(histogram.least() ? std::bit_width(histogram.least()) - 1 : 0);
    const auto last = static_cast<uint32_t>(histogram.most() ? std::bit_width(histogram.most()) - 1 : 0);
    uint64_t highest = 1;
    for (uint32_t i = first; i <= last; ++i) highest = std::max(highest, histogram.power(i));
    for (uint32_t i = first; i <= last; ++i) {
        const uint64_t n = histogram.power(i);
        const uint64_t bar = n * kBar / highest;
        append(out, "  {:>9} .. {:<9} {:>10} |{:<{}}|\n", power_text(i), power_text(i + 1), render::grouped(n),
               std::string(n ? std::max<uint64_t>(bar, 1) : 0, '#'), kBar);
    }
}

} // namespace rawbpf::inline v0::trace
