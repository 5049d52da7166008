// Questions in one line: events are put into groups and counted, summed up, spread over histograms in the kernel.
//
//      --by comm,arg0 --count --hist duration
//
//      trace_groups     key                              value, of each CPU or of all
//                       | comm 16 | arg0 8 |     -->     | count 8 | sum(X) 8 | buckets 66 x 8 |
//
//      AggregateOptions --trace_unit--> GroupLayout, programs      the kernel counts
//                                       read_groups()              a table of rows: merged, sorted
//                                       append_groups()            text, json, csv, prometheus
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "asm/int128.h"
#include "programs/trace/expression.h"
#include "programs/trace/signature.h"
#include "runtime/base/result.h"
#include "runtime/btf/btf.h"

namespace rawbpf::inline v0 {
class Map;
}

namespace rawbpf::inline v0::trace {

/// What events are told apart by.
struct GroupKey {
    enum class Kind : uint8_t {
        value,    ///< an expression: a number or a text
        function, ///< the place's function
        stack,    ///< which functions called it: a hash, of which GroupStacks knows the stack
    };
    Kind kind = Kind::value;
    Expression expression;
    [[nodiscard]] const std::string &name() const { return expression.source; }
};

/// What is worked out of a group's events.
struct Measure {
    enum class Kind : uint8_t { sum, average, least, most, log2, linear };
    Kind kind = Kind::sum;
    Expression value;
    int64_t from = 0, to = 0; ///< linear: the buckets' range, to excluded
    uint64_t step = 1;        ///< linear: of each bucket
    [[nodiscard]] bool is_histogram() const { return kind >= Kind::log2; }
    /// 64-bit numbers that it takes. log2: less than 0 | 0 | 1 | 2, 3 | 4 to 7 | ...; linear: below | ... | from `to` on.
    [[nodiscard]] uint32_t words() const;
    /// "sum", "avg" ...: as the options are called.
    [[nodiscard]] std::string_view word() const;
    [[nodiscard]] std::string name() const; ///< "sum(ret)"
    /// Of a histogram: where a bucket begins and its last value; false: nothing is below (or above) it.
    struct Bucket {
        bool has_least = true, has_most = true;
        Int128 least = 0, most = 0;
    };
    [[nodiscard]] Bucket bucket(uint32_t index) const;
};

inline constexpr uint32_t kMostBuckets = 1000;     // of a linear histogram
inline constexpr uint32_t kMostGroupKey = 192;     // bytes of all keys of a group: they are put together on the stack
inline constexpr uint32_t kMostGroupValue = 32000; // bytes: what a CPU's part of a map may have
inline constexpr uint32_t kGroupText = 64;         // bytes of a text that are looked at, its zero included

struct AggregateOptions {
    std::vector<GroupKey> by;
    std::vector<Measure> measures; ///< empty: only how many
    uint32_t keys = 0;             ///< different groups at most; 0: as many as there is room for
    uint32_t text_bytes = kGroupText;
    uint32_t cpus = 1;     ///< that may be there: each has its own numbers where that isn't too much
    bool exchanges = true; ///< the kernel has atomic compare and exchange here (5.12)
    [[nodiscard]] bool mentions(std::string_view name) const;
    [[nodiscard]] bool by_stack() const;
};

/// --by: names and expressions, separated by commas. Errors: invalid_argument with a caret.
[[nodiscard]] Result<std::vector<GroupKey>> parse_group_keys(std::string_view list);
/// X, or for Measure::Kind::linear X,FROM,TO,STEP. Errors: invalid_argument.
[[nodiscard]] Result<Measure> parse_measure(Measure::Kind kind, std::string_view text);

/// Where things are in a key and in a value.
struct GroupLayout {
    struct Part {
        GroupKey::Kind kind = GroupKey::Kind::value;
        Type type;         ///< of a value
        bool text = false; ///< a text of `bytes`, filled up with zeroes; else a number of 64 bits
        uint32_t offset = 0, bytes = 8;
    };
    struct Cell {
        uint32_t offset = 0;
        bool is_signed = false;
    };
    std::vector<Part> parts; ///< of AggregateOptions::by
    std::vector<Cell> cells; ///< of AggregateOptions::measures
    uint32_t key_bytes = 0, value_bytes = 0;
    bool counted = true; ///< the first word is how many; else that is the sum of the first histogram's buckets
    bool per_cpu = true;
    uint32_t keys = 0; ///< entries of the map
};
inline constexpr unsigned char kUnreadableText = 0xff; // the first byte, in place of a text that couldn't be read

/// What a group came to.
struct GroupRow {
    std::string key; ///< as in the map
    uint64_t count = 0;
    /// Of each measure: sum, average: a sum; least, most: the value; histograms: the buckets.
    std::vector<std::vector<uint64_t>> cells;
};

/// All groups, largest first: by count, or where that wasn't asked for by the first measure.
[[nodiscard]] Result<std::vector<GroupRow>> read_groups(const Map &map, const AggregateOptions &options,
                                                        const GroupLayout &layout);
/// The same from memory: `values` has `cpus` copies for each key. PURE.
[[nodiscard]] std::vector<GroupRow> group_rows(const AggregateOptions &options, const GroupLayout &layout, std::string_view keys,
                                               std::string_view values, size_t cpus);
/// `more` is of the same group: into `into`. PURE.
void join_groups(const AggregateOptions &options, const GroupLayout &layout, GroupRow &into, const GroupRow &more);
/// What came in between; least and most are those since the beginning. Groups without events are left out.
[[nodiscard]] std::vector<GroupRow> groups_since(const AggregateOptions &options, const std::vector<GroupRow> &before,
                                                 const std::vector<GroupRow> &now);
/// Largest first.
void sort_groups(const AggregateOptions &options, const GroupLayout &layout, bool by_count, std::vector<GroupRow> &rows);

enum class GroupFormat : uint8_t { text, json, csv, prometheus };

struct NamedStack;

struct GroupView {
    const AggregateOptions &options;
    const GroupLayout &layout;
    const std::vector<std::string> &functions; ///< names of places
    const btf::Btf *kernel = nullptr;          ///< for enumerators
    bool count = false;                        ///< how many was asked for
    size_t top = SIZE_MAX;                     ///< groups that are shown
    /// With --every: when this is, in ns since the start.
    struct Interval {
        uint64_t number = 0, t_ns = 0, wall_ns = 0;
    };
    const Interval *interval = nullptr;
    bool first = true;                                      ///< csv: with the names of the columns
    std::function<const NamedStack &(uint64_t)> stack = {}; ///< of a key of that kind
};
void append_groups(std::string &out, GroupFormat format, const GroupView &view, const std::vector<GroupRow> &rows);

} // namespace rawbpf::inline v0::trace
