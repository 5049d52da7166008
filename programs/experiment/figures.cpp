// Per-CPU values and buckets are how the kernel counts without waiting for itself; people want one number. So values of all CPUs
// are added up (of least and most the least and the most are taken), and the elements that are buckets of one key become one row.
//
//      key     bucket   cpu 0   cpu 1            key    buckets
//      cat       3        2       5       -->    cat    [0 0 0 7 1]
//      cat       4        1       0
#include "programs/experiment/figures.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/base/stable_sort.h"

namespace rawbpf::inline v0::experiment {
namespace {

constexpr size_t kMostBuckets = 1100;

std::string text_of(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
uint64_t word_at(Bytes bytes, size_t at, size_t size = 8) {
    uint64_t out = 0;
    if (at < bytes.size()) std::memcpy(&out, bytes.data() + at, std::min({size, bytes.size() - at, size_t{8}}));
    return out;
}
bool all_zero(Bytes bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}
bool is_histogram(Figures figures) { return figures == Figures::log2 || figures == Figures::linear; }

// A plain value of several CPUs: members that are numbers are added up, the others are those of the first CPU that has any.
std::string added_up(const MapView &view, Bytes values, size_t size, size_t stride, size_t cpus) {
    std::string out = text_of(values.subspan(0, std::min(size, values.size())));
    for (size_t cpu = 1; cpu < cpus; ++cpu) {
        const Bytes one = values.subspan(std::min(values.size(), cpu * stride),
                                         std::min(size, values.size() - std::min(values.size(), cpu * stride)));
        for (const Column &column : view.value) {
            if (column.offset >= out.size() || column.offset >= one.size()) continue;
            const size_t bytes = std::min<size_t>(column.size, out.size() - column.offset);
            const bool number = column.show == Show::number || column.show == Show::signed_number;
            if (number && bytes <= 8) {
                uint64_t sum = word_at(bytes_of(out), column.offset, bytes) + word_at(one, column.offset, bytes);
                std::memcpy(out.data() + column.offset, &sum, bytes);
            } else if (all_zero(bytes_of(out).subspan(column.offset, bytes))) {
                std::memcpy(out.data() + column.offset, one.data() + column.offset, std::min(bytes, one.size() - column.offset));
            }
        }
    }
    return out;
}

void add_stats(FigureRow &row, Bytes one, bool is_signed) {
    const uint64_t count = word_at(one, 0);
    if (count == 0) return;
    const auto least = static_cast<int64_t>(word_at(one, 16)), most = static_cast<int64_t>(word_at(one, 24));
    const auto below = [&](int64_t a, int64_t b) {
        return is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
    };
    if (row.count == 0 || below(least, row.least)) row.least = least;
    if (row.count == 0 || below(row.most, most)) row.most = most;
    row.count += count;
    row.sum = static_cast<int64_t>(static_cast<uint64_t>(row.sum) + word_at(one, 8));
}

} // namespace

std::optional<double> FigureTable::main_number(const FigureRow &row) const {
    const auto real = [&](int64_t x) {
        return is_signed ? static_cast<double>(x) : static_cast<double>(static_cast<uint64_t>(x));
    };
    switch (view.figures) {
    case Figures::plain: {
        if (view.value.empty()) return {};
        const std::optional<int64_t> number = integer(view.value[0], bytes_of(row.value));
        if (!number) return {};
        return view.value[0].show == Show::signed_number || view.value[0].show == Show::error
                   ? static_cast<double>(*number)
                   : static_cast<double>(static_cast<uint64_t>(*number));
    }
    case Figures::sum: return real(row.sum);
    case Figures::stats:
        if (view.figure == "min") return real(row.least);
        if (view.figure == "max") return real(row.most);
        if (view.figure == "avg") return average(row);
        return static_cast<double>(row.count);
    case Figures::log2:
    case Figures::linear: break;
    }
    return static_cast<double>(row.count);
}

double FigureTable::average(const FigureRow &row) const {
    const double sum = is_signed ? static_cast<double>(row.sum) : static_cast<double>(static_cast<uint64_t>(row.sum));
    return row.count == 0 ? 0 : sum / static_cast<double>(row.count);
}

FigureTable figures_of(const MapView &view, const MapShape &shape, Bytes keys, Bytes values, bool skip_zero) {
    FigureTable out;
    out.view = view;
    out.is_signed = view.is_signed;
    const size_t stride = (shape.value_size + 7) / 8 * 8, copies = std::max<size_t>(shape.cpus, 1);
    const size_t value_bytes = shape.cpus != 0 ? stride * shape.cpus : shape.value_size;
    if (value_bytes == 0) return out;
    const size_t bucket_bytes = is_histogram(view.figures) ? (view.key.empty() ? shape.key_size : 8) : 0;
    std::map<std::string, size_t> places;
    for (size_t i = 0; (i + 1) * value_bytes <= values.size() && (i + 1) * shape.key_size <= keys.size(); ++i) {
        const Bytes key = keys.subspan(i * shape.key_size, shape.key_size), all = values.subspan(i * value_bytes, value_bytes);
        if (skip_zero && all_zero(all)) continue;
        std::string name = text_of(key.subspan(0, key.size() - std::min(bucket_bytes, key.size())));
        const auto [at, first] = places.try_emplace(std::move(name), out.rows.size());
        if (first) out.rows.emplace_back().key = at->first;
        FigureRow &row = out.rows[at->second];
        if (view.figures == Figures::plain) {
            row.value = added_up(view, all, shape.value_size, stride, copies);
            continue;
        }
        uint64_t sum = 0;
        for (size_t cpu = 0; cpu < copies; ++cpu) {
            const Bytes one = all.subspan(cpu * stride, shape.value_size);
            if (view.figures == Figures::stats)
                add_stats(row, one, out.is_signed);
            else
                sum += word_at(one, 0, shape.value_size);
        }
        if (view.figures == Figures::sum) row.sum = static_cast<int64_t>(static_cast<uint64_t>(row.sum) + sum);
        if (is_histogram(view.figures)) {
            const uint64_t bucket = word_at(key, key.size() - bucket_bytes, bucket_bytes);
            if (bucket >= kMostBuckets) continue;
            if (row.buckets.size() <= bucket) row.buckets.resize(bucket + 1);
            row.buckets[bucket] += sum;
            row.count += sum;
        }
    }
    stable_sort(out.rows, [&](const FigureRow &a, const FigureRow &b) {
        const std::optional<double> x = out.main_number(a), y = out.main_number(b);
        if (x && y && *x != *y) return *x > *y;
        for (const Column &column : view.key) {
            const std::optional<int64_t> m = integer(column, bytes_of(a.key)), n = integer(column, bytes_of(b.key));
            if (m && n && *m != *n) return *m < *n;
        }
        return a.key < b.key;
    });
    return out;
}

BucketRange bucket_range(const MapView &view, size_t bucket) {
    BucketRange out;
    if (view.figures == Figures::linear) {
        const auto n = static_cast<int64_t>(bucket);
        out.has_least = bucket != 0;
        out.has_most = bucket + 1 < view.buckets;
        out.least = view.from + (n - 1) * view.step;
        out.most = std::min(view.from + n * view.step, view.to) - 1;
        if (!out.has_least) out.most = view.from - 1;
        if (!out.has_most) out.least = view.to;
        return out;
    }
    if (bucket == 0) {
        out.has_least = false;
        return out;
    }
    const uint64_t least = uint64_t{1} << std::min<size_t>(bucket - 1, 62);
    out.least = static_cast<int64_t>(least);
    out.most = static_cast<int64_t>(2 * least - 1);
    out.has_most = bucket < 63;
    return out;
}

} // namespace rawbpf::inline v0::experiment
