// What a map holds, as rows: the numbers of all CPUs put together, largest first. PURE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "programs/experiment/views.h"
#include "runtime/base/bytes.h"

namespace rawbpf::inline v0::experiment {

/// How the bytes of a map lie in memory, as Map::read_all() gives them.
struct MapShape {
    size_t key_size = 0, value_size = 0;
    size_t cpus = 0; ///< copies of a value, each rounded up to 8 bytes; 0: there is one for all
};

/// One element: of a histogram all of its buckets.
struct FigureRow {
    std::string key;                      ///< bytes, without the bucket
    std::string value;                    ///< plain: bytes, those of all CPUs added up member by member
    uint64_t count = 0;                   ///< stats, histograms: how many
    int64_t sum = 0, least = 0, most = 0; ///< sum, stats
    std::vector<uint64_t> buckets;        ///< histograms
};

struct FigureTable {
    MapView view;
    std::vector<FigureRow> rows;
    bool is_signed = false; ///< sum, least and most

    /// Of a row the number that it is sorted by: a plain value's first, a sum, what was asked of stats, how many of a histogram.
    /// nullopt: the value is no number.
    [[nodiscard]] std::optional<double> main_number(const FigureRow &row) const;
    [[nodiscard]] double average(const FigureRow &row) const; ///< of stats; 0 without any
};

/// Puts together what was read: `keys` and `values` of all entries, one behind the other. Elements of arrays that are zero are
/// left out when the view has no key that means something else.
[[nodiscard]] FigureTable figures_of(const MapView &view, const MapShape &shape, Bytes keys, Bytes values, bool skip_zero);

/// What a bucket holds: [least, most]; false: it goes on without end there.
struct BucketRange {
    bool has_least = true, has_most = true;
    int64_t least = 0, most = 0;
};
/// log2: 0 and less | 1 | 2, 3 | 4 to 7 | ...; linear: less | from, from + step - 1 | ... | more.
[[nodiscard]] BucketRange bucket_range(const MapView &view, size_t bucket);

} // namespace rawbpf::inline v0::experiment
